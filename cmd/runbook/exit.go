package main

import (
	"runbook/internal/fault"
	"runbook/internal/plan"
)

// exitCode is the one place where an error becomes an exit code:
//
//	0   done, or dry run complete
//	1   a step failed
//	2   wrong command line, or invalid plan
//	3   refused: a precondition is not met, nothing was changed
//	4   another run holds the lock
//	130 interrupted
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case len(plan.Diagnostics(err)) > 0:
		return fault.Usage.ExitCode()
	default:
		return fault.KindOf(err).ExitCode()
	}
}
