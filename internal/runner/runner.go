// Package runner executes a plan: first a preview of every step, which reads
// only and is all that a dry run does; then, when asked to, each step between
// live checks of the facts that it requires and provides, under the instance's
// lock, with a journal. It knows no step type by name and shows nothing itself.
package runner

import (
	"fmt"
	"slices"
	"time"

	"runbook/internal/claim"
	"runbook/internal/console"
	"runbook/internal/event"
	"runbook/internal/instance"
	"runbook/internal/journal"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// Console shows events and progress to whoever watches.
type Console interface {
	Emit(event.Event)
	Progress(step event.Step, what string, total int64) *console.Progress
}

// Config is what a Runner works with.
type Config struct {
	Plan     *plan.Plan
	Types    []step.Type
	Instance *instance.Instance
	Console  Console
	Now      func() time.Time // nil: time.Now
	LockTTL  time.Duration    // 0: claim's own
}

// Runner applies one plan once. It is not safe for concurrent use; the steps'
// reporters are.
type Runner struct {
	Config
	steps   []*stepState
	undo    bool
	journal *journal.Run  // nil until Run
	kept    []event.Event // of the preview, for the journal
}

// stepState is a step with all that is known of it so far. What it settles are
// the facts that are at stake from its first effect until it is done.
type stepState struct {
	*plan.Step
	kind     step.Type
	ref      event.Step
	inputs   any  // as bound last
	bound    bool // there are no inputs to bind
	settles  []plan.Fact
	verified map[plan.Fact]bool
	changes  bool // as previewed
}

// New prepares a runner. The plan's steps must all be of the types given, which
// plan.Load guarantees when both come from the same list.
func New(c Config) (*Runner, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &Runner{Config: c}
	for i, s := range c.Plan.Steps {
		at := slices.IndexFunc(c.Types, func(t step.Type) bool { return t.Name == s.Type.Name })
		if at < 0 {
			return nil, fmt.Errorf("step %s: no step type %q", s.ID, s.Type.Name)
		}
		r.steps = append(r.steps, &stepState{
			Step: s, kind: c.Types[at], settles: c.Types[at].Provides, verified: map[plan.Fact]bool{},
			ref: event.Step{ID: s.ID, Type: s.Type.Name, Number: i + 1, Of: len(c.Plan.Steps)},
		})
	}
	return r, nil
}

// Steps lists the steps in the order in which they run, for the journal.
func (r *Runner) Steps() []journal.Step {
	var steps []journal.Step
	for _, s := range r.steps {
		steps = append(steps, journal.Step{ID: s.ID, Type: s.ref.Type})
	}
	return steps
}

// emit sends an event to the console and to the journal, where a failure shows
// at the next boundary.
func (r *Runner) emit(e event.Event) { _ = r.send(e, false) }

// boundary is emit for the events after which the next effect on the instance
// may come: it returns once the event is on disk.
func (r *Runner) boundary(e event.Event) error { return r.send(e, true) }

func (r *Runner) send(e event.Event, sync bool) error {
	e.V, e.Time = event.Version, r.Now().UTC()
	if r.journal == nil {
		r.kept = append(r.kept, e)
		r.Console.Emit(e)
		return nil
	}
	e.Run = r.journal.Record.ID
	err := r.journal.Append(e, sync)
	r.Console.Emit(e)
	return err
}

// env is what a step may touch; c is nil in a preview and in checks, which
// therefore cannot write.
func (r *Runner) env(s *stepState, c *claim.Claim) *step.Env {
	env := &step.Env{StepID: s.ID, Instance: r.Instance, Claim: c, Report: reporter{r, s}, Now: r.Now}
	if c != nil {
		env.Journal = r.journal
	}
	return env
}

// reporter turns what a step says into events.
type reporter struct {
	runner *Runner
	step   *stepState
}

func (p reporter) Note(format string, args ...any) {
	p.runner.emit(event.Event{Event: event.Note, Step: &p.step.ref, Text: fmt.Sprintf(format, args...)})
}

func (p reporter) Warn(format string, args ...any) {
	p.runner.emit(event.Event{Event: event.Warning, Step: &p.step.ref, Text: fmt.Sprintf(format, args...)})
}

func (p reporter) Progress(what string, total int64) step.Progress {
	return p.runner.Console.Progress(p.step.ref, what, total)
}
