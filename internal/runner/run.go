package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
	"runbook/internal/journal"
	"runbook/internal/step"
)

// Run takes the lock and runs every step, after a Preview. The end that it
// reports is also the last event of the journal; the error decides the exit code.
func (r *Runner) Run(ctx *interrupt.Context, p *Preview, j *journal.Run) error {
	run := &running{Runner: r, ctx: ctx, left: p.Left, start: r.Now(), outputs: map[string]any{}}
	r.journal = j
	for _, e := range r.kept {
		e.Run = j.Record.ID
		_ = j.Append(e, false) // a failure shows at the boundary below
	}
	return run.end(run.all())
}

// running is a run under way.
type running struct {
	*Runner
	ctx     *interrupt.Context
	claim   *claim.Claim
	left    *claim.Marker
	start   time.Time
	outputs map[string]any
	done    int  // steps finished
	changed bool // something may have been changed
}

func (r *running) all() error {
	record := r.journal.Record
	err := r.boundary(event.Event{Event: event.RunStarted, Start: &event.Start{
		Who: record.Who, Host: record.Host, PID: record.PID, Version: record.Version, Journal: r.journal.Dir()}})
	if err != nil {
		return err
	}
	client, err := r.Instance.Etcd(r.ctx.Soft())
	if err != nil {
		return err
	}
	settings := r.Instance.Settings
	r.claim, err = claim.Take(r.ctx.Soft(), client,
		claim.Place{Root: settings.Etcd.RootPath, MetaRoot: settings.MetaRoot()},
		claim.Owner{RunID: record.ID, Plan: record.Plan, Who: record.Who, Host: record.Host,
			PID: record.PID, Version: record.Version, Since: record.Started},
		claim.Options{TTL: r.LockTTL, Lost: r.ctx.Abort})
	if err != nil {
		return err
	}
	defer r.release()
	for i := range r.steps {
		if err := r.step(i); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) release() {
	r.changed = r.changed || r.claim.Begun()
	if err := r.claim.Release(r.ctx.Soft()); err != nil {
		r.emit(event.Event{Event: event.Warning, Text: err.Error()})
	}
}

// step runs one step between the checks of its facts, and records it.
func (r *running) step(i int) error {
	s, began := r.steps[i], r.Now()
	ctx := r.ctx.Soft()
	if ctx.Err() != nil {
		return fmt.Errorf("before step %s: %w", s.ID, context.Cause(ctx))
	}
	outputs, err := r.runStep(ctx, i)
	seconds := r.Now().Sub(began).Seconds()
	if err != nil {
		err = r.ended(ctx, err)
		r.emit(event.Event{Event: event.StepFailed, Step: &s.ref, Seconds: seconds, Error: event.ErrorOf(err)})
		return fmt.Errorf("step %s: %w", s.ID, err)
	}
	r.done++
	r.changed = r.changed || s.changes
	done := event.Event{Event: event.StepDone, Step: &s.ref, Seconds: seconds, Outputs: outputs}
	if summary, ok := outputs.(step.Summarizer); ok {
		done.Lines = summary.Summary()
	}
	return r.boundary(done)
}

func (r *running) runStep(ctx context.Context, i int) (any, error) {
	s := r.steps[i]
	if err := s.bind(r.outputs); err != nil {
		return nil, err
	}
	if err := r.claim.Enter(ctx, claim.Stage{Step: s.ID, Doing: s.kind.Summary, Owes: r.owed(i, r.left)}); err != nil {
		return nil, err
	}
	if err := r.boundary(event.Event{Event: event.StepStarted, Step: &s.ref, Text: s.kind.Summary}); err != nil {
		return nil, err
	}
	for _, fact := range s.required() {
		by := r.provider(i, fact)
		if err := r.check(ctx, by, fact); err != nil {
			return nil, err
		}
		r.emit(event.Event{Event: event.FactSeen, Step: &s.ref, Fact: &event.Fact{Name: string(fact), State: event.Verified, By: by.ID}})
	}
	outputs, err := s.kind.Run(ctx, r.env(s, r.claim), s.inputs)
	if err != nil {
		return nil, err
	}
	r.outputs[s.ID] = outputs
	return outputs, r.verify(ctx, i)
}

// verify proves what a step was to bring about.
func (r *running) verify(ctx context.Context, i int) error {
	s := r.steps[i]
	for _, fact := range s.kind.Provides {
		if err := r.check(ctx, s, fact); err != nil {
			return fmt.Errorf("after the step: %w", err)
		}
		r.emit(event.Event{Event: event.FactSeen, Step: &s.ref, Fact: &event.Fact{Name: string(fact), State: event.Provided, By: s.ID}})
	}
	for _, x := range s.Expectations {
		outcome, err := x.Check(r.outputs[s.ID], r.outputs)
		if err != nil {
			return diagnosed(err)
		}
		r.emit(event.Event{Event: event.Expected, Step: &s.ref, Expectation: &event.Expectation{
			Source: x.Source, OK: outcome.OK, Operands: outcome.String()}})
		if !outcome.OK {
			return fault.Fail("run.expectation", "%s does not hold: %s", x.Source, outcome).
				At(fmt.Sprintf("%s:%d:%d", r.Plan.Path, x.Position.Line, x.Position.Column))
		}
	}
	return r.settle(ctx, i)
}

// settle takes the marker away when nothing is at stake any more after step i.
func (r *running) settle(ctx context.Context, i int) error {
	if !r.steps[i].kind.Destructive {
		return nil
	}
	owed := r.owed(i+1, r.left)
	if len(owed) == 0 {
		return r.claim.Finish(interrupt.Unit(ctx))
	}
	return r.claim.Enter(interrupt.Unit(ctx), claim.Stage{Step: r.steps[i].ID, Doing: "done with this step, not with the plan", Owes: owed})
}

// ended replaces the symptom by its cause when the run's context ended under a
// step: a step only sees that its requests were cancelled.
func (r *running) ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if ctx.Err() == nil || errors.Is(err, cause) {
		return err
	}
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return cause
	}
	return fmt.Errorf("%w; under way then: %w", cause, err)
}
