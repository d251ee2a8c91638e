package console

import (
	"fmt"
	"strings"
	"time"

	"runbook/internal/event"
)

// renderers say how each kind of event is shown to people; the others are not.
var renderers = map[event.Name]func(t Terminal, b *strings.Builder, e event.Event){
	event.PlanLoaded:    planLoaded,
	event.LeftFound:     leftFound,
	event.LockHeld:      lockHeld,
	event.StepPreviewed: stepPreviewed,
	event.Expected:      expected,
	event.PreviewDone:   previewDone,
	event.RunStarted:    runStarted,
	event.StepStarted:   stepStarted,
	event.FactSeen:      factSeen,
	event.Note:          note,
	event.Warning:       warning,
	event.StepDone:      stepDone,
	event.Ended:         ended,
}

// isResult says which events go to stdout.
func isResult(e event.Event) bool {
	switch e.Event {
	case event.PlanLoaded, event.StepPreviewed, event.PreviewDone, event.StepDone:
		return true
	case event.Expected:
		return e.Expectation.Predicted
	case event.Ended:
		return e.End.Outcome == event.Done
	default:
		return false
	}
}

func heading(s *event.Step) string { return fmt.Sprintf("%d/%d %s (%s)", s.Number, s.Of, s.ID, s.Type) }

func planLoaded(t Terminal, b *strings.Builder, e event.Event) {
	title := fmt.Sprintf("%s (%s)", e.Plan.Name, e.Plan.Path)
	if e.Plan.DryRun {
		title = "dry run of " + title + ": reads only"
	}
	t.text(b, 0, "", "", title)
	t.rows(b, 2, e.Lines)
}

func leftFound(t Terminal, b *strings.Builder, e event.Event) {
	t.text(b, 0, "warning: ", t.yellow("warning:")+" ", e.Text)
	t.rows(b, 2, e.Lines)
}

func lockHeld(t Terminal, b *strings.Builder, e event.Event) {
	t.text(b, 0, "warning: ", t.yellow("warning:")+" ", e.Text)
}

func stepPreviewed(t Terminal, b *strings.Builder, e event.Event) {
	title := heading(e.Step)
	if e.Changes != nil && !*e.Changes {
		title += ": changes nothing"
	}
	b.WriteString("\n" + t.bold(title) + "\n")
	var rows []event.Line
	for _, f := range e.Requires {
		rows = append(rows, event.Line{Subject: "needs", Value: f.Name + ", " + required(f)})
	}
	rows = append(rows, e.Lines...)
	for _, f := range e.Provides {
		rows = append(rows, event.Line{Subject: "gives", Value: f.Name + ", " + provided(f)})
	}
	t.rows(b, 2, rows)
	for _, w := range e.Warnings {
		t.text(b, 2, "warning: ", t.yellow("warning:")+" ", w)
	}
}

func required(f event.Fact) string {
	if f.State == event.Assumed {
		return "assumed: step " + f.By + " is to provide it"
	}
	return "verified now, through step " + f.By
}

func provided(f event.Fact) string {
	if f.State == event.Assumed {
		return "to be verified right after the step"
	}
	return "verified now"
}

func expected(t Terminal, b *strings.Builder, e event.Event) {
	x := e.Expectation
	verdict := "holds"
	switch {
	case x.Predicted && x.OK:
		verdict = "would hold"
	case x.Predicted:
		verdict = "would not hold"
	case !x.OK:
		verdict = "does not hold"
	}
	text := x.Source + ": " + verdict
	if x.Operands != "" {
		text += " (" + x.Operands + ")"
	}
	t.text(b, 2, "expects  ", t.dim("expects  "), text)
}

func previewDone(t Terminal, b *strings.Builder, e event.Event) {
	if e.Changes != nil && !*e.Changes {
		b.WriteString("\n")
		t.text(b, 0, "", "", "there is nothing to change")
	}
}

func runStarted(t Terminal, b *strings.Builder, e event.Event) {
	b.WriteString("\n")
	t.text(b, 0, "", "", fmt.Sprintf("run %s, journal in %s", e.Run, e.Start.Journal))
}

func stepStarted(t Terminal, b *strings.Builder, e event.Event) {
	b.WriteString("\n" + t.bold(heading(e.Step)) + "\n")
	t.text(b, 2, "", "", e.Text)
}

func factSeen(t Terminal, b *strings.Builder, e event.Event) {
	how := "verified before the step, through step " + e.Fact.By
	if e.Fact.State == event.Provided {
		how = "verified after the step"
	}
	t.text(b, 2, "", "", e.Fact.Name+" holds: "+how)
}

func note(t Terminal, b *strings.Builder, e event.Event) {
	indent := 0
	if e.Step != nil {
		indent = 2
	}
	t.text(b, indent, "", "", e.Text)
}

func warning(t Terminal, b *strings.Builder, e event.Event) {
	text := e.Text
	if e.Step != nil {
		text = e.Step.ID + ": " + text
	}
	t.text(b, 0, "warning: ", t.yellow("warning:")+" ", text)
}

func stepDone(t Terminal, b *strings.Builder, e event.Event) {
	b.WriteString(t.bold(heading(e.Step)) + ": done in " + seconds(e.Seconds) + "\n")
	t.rows(b, 2, e.Lines)
}

func ended(t Terminal, b *strings.Builder, e event.Event) {
	b.WriteString("\n")
	if e.End.Error != nil {
		b.WriteString(t.Problem(e.End.Error))
	}
	for _, line := range e.Lines {
		t.rows(b, 0, []event.Line{line})
	}
	if e.Text != "" {
		t.text(b, 0, "", "", e.Text)
	}
}

func seconds(s float64) string { return duration(time.Duration(s * float64(time.Second))) }
