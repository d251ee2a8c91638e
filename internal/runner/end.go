package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/journal"
)

// end reports how the run ended. A refusal after something was changed is a
// failure like any other: the instance is no longer as it was.
func (r *running) end(err error) error {
	if err != nil && r.changed && fault.KindOf(err) == fault.Refused {
		err = failed(err)
	}
	end := &event.End{Outcome: event.OutcomeOf(err), Changed: r.changed, Error: event.ErrorOf(err),
		Seconds: r.Now().Sub(r.start).Seconds()}
	if err != nil {
		end.ExitCode = fault.KindOf(err).ExitCode()
	}
	for i, s := range r.steps {
		if i < r.done {
			end.Done = append(end.Done, s.ID)
		} else {
			end.Left = append(end.Left, s.ID)
		}
	}
	e := event.Event{Event: event.Ended, End: end, Text: r.conclusion(err, end)}
	if err != nil {
		e.Lines = progressLines(end)
	}
	if journalErr := r.boundary(e); err == nil {
		return journalErr
	}
	return err
}

func (r *running) conclusion(err error, end *event.End) string {
	report := filepath.Join(r.journal.Dir(), journal.HTMLFile)
	switch {
	case err == nil:
		return fmt.Sprintf("done: %s in %s; report in %s", strings.Join(end.Done, ", "), roundSeconds(end.Seconds), report)
	case !r.changed:
		return "nothing was changed"
	case r.claim != nil && r.claim.Begun() && len(end.Left) > 0:
		return fmt.Sprintf("the instance is marked as half done (%s): do not start milvus; apply the same plan again, it finishes what is left",
			claim.MarkerKey(r.Instance.Settings.Etcd.RootPath))
	default:
		return "apply the same plan again: it finishes what is left"
	}
}

func progressLines(end *event.End) []event.Line {
	line := func(subject string, ids []string) event.Line {
		if len(ids) == 0 {
			return event.Line{Subject: subject, Value: "nothing"}
		}
		return event.Line{Subject: subject, Value: strings.Join(ids, ", ")}
	}
	return []event.Line{line("steps done:", end.Done), line("steps left:", end.Left)}
}

// failed makes a failure of a refusal, keeping its code, place and hints.
func failed(err error) error {
	e := &fault.Error{Kind: fault.Failed, Msg: "after earlier changes", Err: err}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		e.Code, e.Where = f.Code, ""
	}
	return e
}

func roundSeconds(s float64) string { return fmt.Sprintf("%.1fs", s) }
