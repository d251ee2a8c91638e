package runner

import (
	"context"
	"slices"

	"runbook/internal/fault"
	"runbook/internal/journal"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// NewUndo prepares to put back what a run changed, the last step first, in the
// same way in which a plan is applied. Plan and Types of the Config are those of
// the run: Types to find how its steps are undone, Plan is made here.
func NewUndo(c Config, past *journal.Past) (*Runner, error) {
	images, err := past.Images()
	if err != nil {
		return nil, err
	}
	undone := c.Types
	c.Types, c.Plan = nil, &plan.Plan{Name: "undo of " + past.Record.ID, Path: past.Dir}
	var settles [][]plan.Fact
	for _, s := range slices.Backward(past.Record.Steps) {
		image := slices.IndexFunc(images, func(i *journal.Image) bool { return i.Step == s.ID })
		kind := slices.IndexFunc(undone, func(t step.Type) bool { return t.Name == s.Type })
		if image < 0 || kind < 0 || undone[kind].Undo == nil {
			continue
		}
		t := undoOf(undone[kind], s.ID, images[image])
		c.Types = append(c.Types, t)
		c.Plan.Steps = append(c.Plan.Steps, &plan.Step{ID: s.ID, Type: t.StepType})
		settles = append(settles, undone[kind].Provides)
	}
	if len(c.Types) == 0 {
		return nil, fault.Refuse("undo.nothing", "this run left nothing that can be put back").At(past.Dir).
			Hint("see what it did with `runbook runs report %s`; what a step deleted stays deleted", past.Record.ID)
	}
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	r.undo = true
	for i, s := range r.steps {
		s.settles, s.bound = settles[i], true
	}
	return r, nil
}

// undoOf is a step that undoes another one: like any other step, but without
// inputs and without facts of its own.
func undoOf(t step.Type, id string, image *journal.Image) step.Type {
	return step.Type{
		StepType:    plan.StepType{Name: "undo " + t.Name + " of " + id, Summary: "put back what step " + id + " changed"},
		Destructive: true,
		Preview: func(ctx context.Context, env *step.Env, _ any) (step.Preview, error) {
			return t.Undo.Preview(ctx, env, image)
		},
		Run: func(ctx context.Context, env *step.Env, _ any) (any, error) {
			return t.Undo.Run(ctx, env, image)
		},
	}
}
