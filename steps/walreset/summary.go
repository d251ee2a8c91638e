package walreset

import "runbook/internal/step"

// Summary is what an operator reads of a finished reset.
func (o Outputs) Summary() []step.Line { return nil }
