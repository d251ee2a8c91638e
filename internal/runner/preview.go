package runner

import (
	"context"
	"fmt"
	"reflect"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// Preview is what applying the plan would do.
type Preview struct {
	Changes bool
	// Destroys lists the destructive steps that would change something, each as
	// subject, with what it would do as details.
	Destroys []event.Line
	Left     *claim.Marker // what an earlier run left half done; nil: nothing
	Holder   *claim.Holder // who holds the instance now; nil: nobody
}

// Preview previews every step in order, each with the outputs that the earlier
// ones predict. It reads only. A refusal means that nothing was changed.
func (r *Runner) Preview(ctx context.Context, dryRun bool) (*Preview, error) {
	if err := r.Instance.Configure(ctx); err != nil {
		return nil, err
	}
	configured := r.Instance.Configure(ctx)
	r.emit(event.Event{Event: event.PlanLoaded, Lines: append(InstanceLines(r.Instance.Settings), r.resolvedLines()...),
		Plan: &event.Plan{Name: r.Plan.Name, Path: r.Plan.Path, DryRun: dryRun}})
	if configured != nil {
		return nil, configured
	}
	for _, w := range r.Plan.Warnings {
		r.emit(event.Event{Event: event.Warning, Text: w.Error()})
	}
	_, notes := r.Instance.Resolution()
	for _, n := range notes {
		r.emit(event.Event{Event: event.Note, Text: n})
	}
	p := &Preview{}
	if err := r.lookAround(ctx, p); err != nil {
		return nil, err
	}
	outputs := map[string]any{}
	for i, s := range r.steps {
		lines, err := r.previewStep(ctx, i, outputs)
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", s.ID, err)
		}
		p.Changes = p.Changes || s.changes
		if s.changes && s.kind.Destructive {
			p.Destroys = append(p.Destroys, inShort(s, lines))
		}
	}
	r.emit(event.Event{Event: event.PreviewDone, Changes: &p.Changes})
	return p, nil
}

// inShort leaves out the details of what a step would do.
func inShort(s *stepState, lines []step.Line) event.Line {
	short := event.Line{Subject: s.ID, Value: s.kind.Summary}
	for _, line := range lines {
		short.Detail = append(short.Detail, line.Subject+": "+line.Value)
	}
	return short
}

func (r *Runner) previewStep(ctx context.Context, i int, outputs map[string]any) ([]step.Line, error) {
	s := r.steps[i]
	if err := s.bind(outputs); err != nil {
		return nil, err
	}
	needs, err := r.needs(i)
	if err != nil {
		return nil, err
	}
	found, err := s.kind.Preview(ctx, r.env(s, nil), s.inputs)
	if err != nil {
		return nil, err
	}
	s.changes = found.Changes
	e := event.Event{Event: event.StepPreviewed, Step: &s.ref, Requires: needs, Lines: found.Lines,
		Warnings: found.Warnings, Changes: &found.Changes, Outputs: found.Outputs, Provides: r.gives(ctx, s)}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.emit(e)
	outputs[s.ID] = found.Outputs
	if found.Outputs == nil {
		if s.kind.Outputs != nil {
			outputs[s.ID] = reflect.Zero(s.kind.Outputs).Interface()
		}
		return found.Lines, nil
	}
	return found.Lines, r.predict(s, outputs)
}

// predict evaluates the expectations over predicted outputs. One that would not
// hold is shown and no more: a prediction may lack what only a run can find out.
func (r *Runner) predict(s *stepState, outputs map[string]any) error {
	for _, x := range s.Expectations {
		outcome, err := x.Check(outputs[s.ID], outputs)
		if err != nil {
			return diagnosed(err)
		}
		r.emit(event.Event{Event: event.Expected, Step: &s.ref, Expectation: &event.Expectation{
			Source: x.Source, OK: outcome.OK, Operands: outcome.String(), Predicted: true}})
	}
	return nil
}

func (s *stepState) bind(outputs map[string]any) error {
	if s.bound {
		return nil
	}
	inputs, err := s.Bind(outputs)
	if err != nil {
		return diagnosed(err)
	}
	s.inputs = inputs
	return nil
}

// diagnosed gives a diagnostic of the plan the shape of the other errors.
func diagnosed(err error) error {
	all := plan.Diagnostics(err)
	if len(all) == 0 {
		return err
	}
	d := all[0]
	f := fault.BadUsage(d.Code, "%s", d.Message).At(d.Where())
	if d.Hint != "" {
		f.Hint("%s", d.Hint)
	}
	return f
}
