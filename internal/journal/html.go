package journal

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"runbook/internal/event"
)

//go:embed report.html.tmpl
var page string

// HTML writes the report as one page that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"stamp": stamp, "took": took, "flatten": flatten,
		"breaks": func(text string) []string { return strings.Split(text, "\n") },
		"class":  func(s string) string { return strings.ReplaceAll(s, " ", "-") },
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, reportPage{r})
}

// reportPage is the report as the template sees it.
type reportPage struct{ *Report }

// Facts of the run itself.
func (p reportPage) Facts() []event.Line { return p.facts() }

// Remarks of a step.
func (p reportPage) Remarks(s *StepReport) []string { return s.remarks() }
