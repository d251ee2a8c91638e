package runner

import (
	"context"
	"fmt"

	"runbook/internal/event"
	"runbook/internal/plan"
)

// provider is the last step before position i that provides fact; nil when no
// step does, which the validator rules out.
func (r *Runner) provider(i int, fact plan.Fact) *stepState {
	for i--; i >= 0; i-- {
		for _, provided := range r.steps[i].kind.Provides {
			if provided == fact {
				return r.steps[i]
			}
		}
	}
	return nil
}

// required lists the facts that a step needs with the inputs it is bound to.
func (s *stepState) required() []plan.Fact {
	var facts []plan.Fact
	for _, requirement := range s.kind.Requires {
		if requirement.If == nil || requirement.If(s.inputs) {
			facts = append(facts, requirement.Fact)
		}
	}
	return facts
}

// check proves a fact live, through the step that provided it and with the
// inputs which that step had.
func (r *Runner) check(ctx context.Context, by *stepState, fact plan.Fact) error {
	if err := by.kind.Check(ctx, r.env(by, nil), by.inputs, fact); err != nil {
		return fmt.Errorf("%s does not hold: %w", fact, err)
	}
	return nil
}

// needs tells how the facts that step i requires are known in a preview.
func (r *Runner) needs(i int) ([]event.Fact, error) {
	var facts []event.Fact
	for _, fact := range r.steps[i].required() {
		by := r.provider(i, fact)
		if by == nil {
			return nil, fmt.Errorf("no earlier step provides %s", fact)
		}
		state := event.Assumed
		if by.verified[fact] {
			state = event.Verified
		}
		facts = append(facts, event.Fact{Name: string(fact), State: state, By: by.ID})
	}
	return facts, nil
}

// gives tells how the facts that a step provides are known in a preview: when
// the step has nothing to do they hold now, and can be checked now.
func (r *Runner) gives(ctx context.Context, s *stepState) []event.Fact {
	var facts []event.Fact
	for _, fact := range s.kind.Provides {
		state := event.Assumed
		if !s.changes && r.check(ctx, s, fact) == nil {
			state = event.Verified
			s.verified[fact] = true
		}
		facts = append(facts, event.Fact{Name: string(fact), State: state, By: s.ID})
	}
	return facts
}

// owed lists the facts that the destructive steps from position i on provide:
// what the instance lacks if the run ends here.
func (r *Runner) owed(i int) []string {
	var facts []string
	for _, s := range r.steps[i:] {
		if s.kind.Destructive {
			for _, fact := range s.kind.Provides {
				facts = append(facts, string(fact))
			}
		}
	}
	return facts
}
