package runner

import (
	"context"
	"fmt"
	"slices"

	"runbook/internal/claim"
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

// owed lists what the instance lacks if the run ends in step i: the facts of the
// destructive steps from there on, and what an earlier run left that this plan
// does not settle.
func (r *Runner) owed(i int, left *claim.Marker) []string {
	facts := r.unsettled(left)
	for _, s := range r.steps[i:] {
		if !s.kind.Destructive {
			continue
		}
		for _, fact := range s.settles {
			if !slices.Contains(facts, string(fact)) {
				facts = append(facts, string(fact))
			}
		}
	}
	return facts
}

// unsettled lists the facts owed by an earlier run that stay owed whatever this
// plan does. Undoing a part of what was left half done leaves all of it half done.
func (r *Runner) unsettled(left *claim.Marker) []string {
	if left == nil {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(left.Owes), func(fact string) bool {
		return slices.ContainsFunc(r.steps, func(s *stepState) bool {
			return slices.Contains(s.settles, plan.Fact(fact))
		})
	})
	if r.undo && len(missing) > 0 {
		return slices.Clone(left.Owes)
	}
	return missing
}
