// Package steps is the one list of step types. A new step type is one package
// beside this file and one line here.
package steps

import (
	"runbook/internal/step"
	"runbook/steps/assertstopped"
	"runbook/steps/checkpointreset"
	"runbook/steps/walreset"
)

// All lists the step types in the order in which a cold operation uses them.
func All() []step.Type {
	return []step.Type{
		assertstopped.Type(),   // nothing runs, and what must stay up is up
		walreset.Type(),        // the WAL is empty on all three tiers
		checkpointreset.Type(), // every stored position is the target's earliest
		// start.Type(),           // Milvus runs again, proved
	}
}
