package console

import (
	"strings"

	"runbook/internal/event"
)

// Problem renders an error: what happened and where, then its hints.
func (t Terminal) Problem(e *event.Error) string {
	var b strings.Builder
	t.text(&b, 0, "error: ", t.red("error:")+" ", e.Message)
	t.hints(&b, e.Hints)
	return b.String()
}

// Advice renders a warning with its hints.
func (t Terminal) Advice(text string, hints ...string) string {
	var b strings.Builder
	t.text(&b, 0, "warning: ", t.yellow("warning:")+" ", text)
	t.hints(&b, hints)
	return b.String()
}

func (t Terminal) hints(b *strings.Builder, hints []string) {
	for _, hint := range hints {
		t.text(b, 0, "hint: ", t.bold("hint:")+" ", hint)
	}
}

// Diagnostic renders one problem of a plan where it is.
func (t Terminal) Diagnostic(where, severity, message, code, hint string) string {
	var b strings.Builder
	painted := t.red(severity + ":")
	if severity != "error" {
		painted = t.yellow(severity + ":")
	}
	t.text(&b, 0, where+": "+severity+": ", t.bold(where+":")+" "+painted+" ", message+" ["+code+"]")
	if hint != "" {
		t.text(&b, 2, "hint: ", t.bold("hint:")+" ", hint)
	}
	return b.String()
}

// Rows renders subjects and values as two columns.
func (t Terminal) Rows(rows []event.Line) string {
	var b strings.Builder
	t.rows(&b, 0, rows)
	return b.String()
}
