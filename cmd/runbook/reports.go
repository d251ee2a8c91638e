package main

import (
	"time"

	"runbook/internal/event"
	"runbook/internal/journal"
	"runbook/internal/runner"
)

// writeReports leaves the reports in the run's folder. The run is over: a report
// that cannot be written is worth a warning.
func (a *app) writeReports(j *journal.Run, out runner.Console) {
	if err := j.Past().WriteReports(); err != nil {
		out.Emit(event.Event{V: event.Version, Time: time.Now().UTC(), Event: event.Warning, Text: err.Error()})
	}
}
