package journal

import (
	"fmt"
	"io"
	"strings"

	"runbook/internal/event"
)

// Markdown writes the report as Markdown (with tables, as GitHub reads them).
func (r *Report) Markdown(w io.Writer) error {
	m := &markdown{}
	m.printf("# run %s: %s\n\n", r.Record.ID, r.Outcome())
	m.lines(r.facts())
	m.conclusion(r)
	m.timeline(r.Steps)
	for _, s := range r.Steps {
		m.step(s)
	}
	m.list("warnings", r.Warnings)
	if len(r.Left) > 0 {
		m.printf("\n## found half done at the start\n\n")
		m.lines(r.Left)
	}
	var images []string
	for _, i := range r.Images {
		images = append(images, i.Step+": "+i.Path)
	}
	m.list("before-images", images)
	m.list("damaged parts of the journal", r.Damaged)
	_, err := io.WriteString(w, m.String())
	return err
}

type markdown struct{ strings.Builder }

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(&m.Builder, format, args...) }

// cell keeps a value within one cell of a table.
func cell(text string) string {
	text = strings.NewReplacer("|", `\|`, "<", "&lt;", "\r", "").Replace(text)
	return strings.ReplaceAll(text, "\n", "<br>")
}

func (m *markdown) lines(lines []event.Line) {
	m.printf("| | |\n|---|---|\n")
	for _, line := range flatten(lines) {
		m.printf("| %s | %s |\n", cell(line.Subject), cell(line.Value))
	}
}

func (m *markdown) conclusion(r *Report) {
	if r.End == nil {
		m.printf("\nThis journal has no end: the run was killed, or it is still under way.\n")
		return
	}
	if e := r.End.Error; e != nil {
		m.printf("\n**%s**\n", cell(e.Message))
		for _, hint := range e.Hints {
			m.printf("- %s\n", cell(hint))
		}
	}
	if r.Closing != "" {
		m.printf("\n%s\n", cell(r.Closing))
	}
}

func (m *markdown) timeline(steps []*StepReport) {
	m.printf("\n## timeline\n\n| step | type | started | took | result |\n|---|---|---|---|---|\n")
	for _, s := range steps {
		length := ""
		if !s.Started.IsZero() {
			length = took(s.Seconds)
		}
		m.printf("| %d %s | %s | %s | %s | %s |\n", s.Number, cell(s.ID), cell(s.Step.Type), stamp(s.Started), length, s.Result)
	}
}

func (m *markdown) step(s *StepReport) {
	m.printf("\n## %d %s (%s): %s\n\n", s.Number, cell(s.ID), cell(s.Step.Type), s.Result)
	if len(s.Rows) > 0 {
		m.printf("| | preview | result |\n|---|---|---|\n")
		for _, row := range s.Rows {
			m.printf("| %s | %s | %s |\n", cell(row.Subject), cell(row.Preview), cell(row.Result))
		}
	}
	if s.Error != nil {
		m.printf("\n**%s**\n", cell(s.Error.Message))
	}
	if items := s.remarks(); len(items) > 0 {
		m.printf("\n")
		for _, item := range items {
			m.printf("- %s\n", cell(item))
		}
	}
}

// remarks are facts, expectations and notes, as sentences.
func (s *StepReport) remarks() []string {
	var items []string
	for _, f := range s.Facts {
		when := "verified before the step, through step " + f.By
		if f.State == event.Provided {
			when = "verified after the step"
		}
		items = append(items, f.Name+" "+when)
	}
	for _, x := range s.Expectations {
		verdict := "holds"
		if !x.OK {
			verdict = "does not hold"
		}
		items = append(items, "expected "+x.Source+": "+verdict+" ("+x.Operands+")")
	}
	return append(items, s.Notes...)
}

func (m *markdown) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.printf("\n## %s\n\n", title)
	for _, item := range items {
		m.printf("- %s\n", cell(item))
	}
}
