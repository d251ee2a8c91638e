// Package step is the contract between the runner and a step type: a step type
// is data plus a preview, a run, and a live check for each fact that it provides.
// Everything that the validator, the help text and the runner say about a step
// type comes from its one Spec.
package step

import (
	"context"
	"reflect"
	"time"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/instance"
	"runbook/internal/journal"
	"runbook/internal/plan"
)

// Env is all that a step may touch. Claim and Journal are nil in a preview,
// which therefore cannot write.
type Env struct {
	StepID   string
	Instance *instance.Instance
	Claim    *claim.Claim
	Journal  *journal.Run
	Report   Reporter
	Now      func() time.Time
}

// Reporter is how a step talks to whoever watches. Text is lower case without a
// full stop; the console renders it for people and as events.
type Reporter interface {
	Note(format string, args ...any)
	Warn(format string, args ...any)
	// Progress starts a counted piece of work; total is 0 when it is not known.
	Progress(what string, total int64) Progress
}

// Progress is one counted piece of work. Add may be called concurrently.
type Progress interface {
	Add(n int64)
	Done()
}

// Preview is what a step would do, found by reading only.
type Preview struct {
	Lines    []Line   // what was found and what would be done, in order
	Warnings []string // what the operator should think about before --run
	Changes  bool     // false: there is nothing to do
	Outputs  any      // the outputs expected; later steps are previewed with them
}

// Line is one row of a preview or a result: a subject, a value, and details
// that are shown indented below it.
type Line = event.Line

// Summarizer is implemented by outputs that say in a few lines what was done.
type Summarizer interface{ Summary() []Line }

// Requirement is a fact that must hold immediately before Run.
type Requirement[In any] struct {
	Fact plan.Fact
	When string // in words, when it is not always required
	If   func(In) bool
}

// Provision is a fact that holds after Run, with the check that proves it live.
// The check reads only; it returns a *fault.Error that says what contradicts it.
type Provision[In any] struct {
	Fact  plan.Fact
	Check func(ctx context.Context, env *Env, in In) error
}

// Spec describes a step type whose inputs are In and whose outputs are Out.
type Spec[In, Out any] struct {
	Name     string
	Summary  string
	Requires []Requirement[In]
	Provides []Provision[In]
	// Preview finds out what Run would do. It reads only.
	Preview func(ctx context.Context, env *Env, in In) (Preview, error)
	// Run does it. Running again after any interruption ends in the same state.
	// ctx ends at the first Ctrl-C; a unit of work that had better be finished
	// once it is begun runs under interrupt.Unit(ctx).
	Run func(ctx context.Context, env *Env, in In) (Out, error)
	// Destructive says that Run deletes or rewrites: from its first effect until
	// the facts that it provides are verified, the instance is marked as half done.
	Destructive bool
	// Undo puts back what Run changed; nil when that cannot be.
	Undo *Undo
}

// Undo puts back what a step changed, from the before-image that its Run wrote
// through Env.Journal.BeforeImage. As for a step, Preview reads only, and Run may
// be run again after any interruption and writes through Env.Claim.
type Undo struct {
	Preview func(ctx context.Context, env *Env, image *journal.Image) (Preview, error)
	Run     func(ctx context.Context, env *Env, image *journal.Image) (Summarizer, error)
}

// Type is a Spec without its type parameters: what the list of step types holds.
type Type struct {
	plan.StepType
	Preview func(ctx context.Context, env *Env, in any) (Preview, error)
	Run     func(ctx context.Context, env *Env, in any) (any, error)
	// Check proves one of the provided facts, with the inputs the providing step had.
	Check func(ctx context.Context, env *Env, in any, fact plan.Fact) error
	// Destructive and Undo are those of the Spec.
	Destructive bool
	Undo        *Undo
}

// Define turns a Spec into a Type.
func Define[In, Out any](s Spec[In, Out]) Type {
	t := Type{Destructive: s.Destructive, Undo: s.Undo, StepType: plan.StepType{
		Name: s.Name, Summary: s.Summary,
		Inputs: reflect.TypeFor[In](), Outputs: reflect.TypeFor[Out](),
	}}
	for _, r := range s.Requires {
		erased := plan.Requirement{Fact: r.Fact, When: r.When}
		if r.If != nil {
			erased.If = func(in any) bool { return r.If(in.(In)) }
		}
		t.Requires = append(t.Requires, erased)
	}
	checks := map[plan.Fact]func(context.Context, *Env, In) error{}
	for _, p := range s.Provides {
		t.Provides = append(t.Provides, p.Fact)
		checks[p.Fact] = p.Check
	}
	t.Preview = func(ctx context.Context, env *Env, in any) (Preview, error) { return s.Preview(ctx, env, in.(In)) }
	t.Run = func(ctx context.Context, env *Env, in any) (any, error) { return s.Run(ctx, env, in.(In)) }
	t.Check = func(ctx context.Context, env *Env, in any, fact plan.Fact) error {
		return checks[fact](ctx, env, in.(In))
	}
	return t
}
