package journal

import (
	"slices"
	"strconv"
	"time"

	"runbook/internal/event"
)

// Report is what is worth keeping of a run, in the order in which it is read.
type Report struct {
	Record   Record
	Instance []event.Line
	End      *event.End // nil: the run never ended, or not in this journal
	Ended    time.Time
	Closing  string // the last words of the run
	Left     []event.Line
	Steps    []*StepReport
	Warnings []string
	Images   []*Image
	Damaged  []string // parts of the journal that could not be read
}

// StepReport is one step of a report.
type StepReport struct {
	event.Step
	Started      time.Time // zero: never started
	Seconds      float64
	Result       string // in one word or two
	Rows         []Row
	Facts        []event.Fact
	Expectations []event.Expectation
	Notes        []string
	Error        *event.Error
}

// Row sets what the preview found beside what the step did.
type Row struct{ Subject, Preview, Result string }

// Report reads the whole journal of a run.
func (p *Past) Report() (*Report, error) {
	events, damaged, err := p.Events()
	if err != nil {
		return nil, err
	}
	images, err := p.Images()
	if err != nil {
		return nil, err
	}
	r := &Report{Record: p.Record, Images: images, Damaged: damaged}
	for i, s := range p.Record.Steps {
		r.Steps = append(r.Steps, &StepReport{Result: "not started",
			Step: event.Step{ID: s.ID, Type: s.Type, Number: i + 1, Of: len(p.Record.Steps)}})
	}
	for _, e := range events {
		r.add(e)
	}
	return r, nil
}

func (r *Report) add(e event.Event) {
	switch e.Event {
	case event.PlanLoaded:
		r.Instance = e.Lines
	case event.LeftFound:
		r.Left = e.Lines
	case event.Warning:
		r.warn(e.Step, e.Text)
	case event.Ended:
		r.End, r.Ended, r.Closing = e.End, e.Time, e.Text
	}
	if e.Step == nil {
		return
	}
	i := slices.IndexFunc(r.Steps, func(s *StepReport) bool { return s.ID == e.Step.ID })
	if i < 0 {
		return
	}
	if e.Event == event.StepPreviewed {
		for _, w := range e.Warnings {
			r.warn(e.Step, w)
		}
	}
	r.Steps[i].add(e)
}

func (r *Report) warn(step *event.Step, text string) {
	if step != nil {
		text = step.ID + ": " + text
	}
	if !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

func (s *StepReport) add(e event.Event) {
	switch e.Event {
	case event.StepPreviewed:
		for _, line := range flatten(e.Lines) {
			s.Rows = append(s.Rows, Row{Subject: line.Subject, Preview: line.Value})
		}
	case event.StepStarted:
		s.Started, s.Result = e.Time, "not finished"
	case event.FactSeen:
		s.Facts = append(s.Facts, *e.Fact)
	case event.Expected:
		if !e.Expectation.Predicted {
			s.Expectations = append(s.Expectations, *e.Expectation)
		}
	case event.Note:
		s.Notes = append(s.Notes, e.Text)
	case event.StepDone:
		s.Seconds, s.Result = e.Seconds, "done"
		s.after(flatten(e.Lines))
	case event.StepFailed:
		s.Seconds, s.Result, s.Error = e.Seconds, "failed", e.Error
	}
}

// after puts each value beside the one that the preview had for its subject.
func (s *StepReport) after(lines []event.Line) {
	previewed := len(s.Rows)
	for _, line := range lines {
		i := slices.IndexFunc(s.Rows[:previewed], func(r Row) bool { return r.Subject == line.Subject && r.Result == "" })
		if i >= 0 {
			s.Rows[i].Result = line.Value
			continue
		}
		s.Rows = append(s.Rows, Row{Subject: line.Subject, Result: line.Value})
	}
}

// flatten joins the details of a line to its value.
func flatten(lines []event.Line) []event.Line {
	var flat []event.Line
	for _, line := range lines {
		for _, detail := range line.Detail {
			if line.Value != "" {
				line.Value += "\n"
			}
			line.Value += detail
		}
		flat = append(flat, event.Line{Subject: line.Subject, Value: line.Value})
	}
	return flat
}

// Outcome says in one word how the run ended.
func (r *Report) Outcome() string {
	if r.End == nil {
		return "not ended"
	}
	return string(r.End.Outcome)
}

// Facts of the run itself, as subject and value.
func (r *Report) facts() []event.Line {
	rec := r.Record
	lines := []event.Line{
		{Subject: "outcome", Value: r.Outcome()},
		{Subject: "plan", Value: rec.Plan + " (" + rec.PlanPath + ")"},
		{Subject: "by", Value: rec.Who + " on " + rec.Host + ", pid " + strconv.Itoa(rec.PID)},
		{Subject: "runbook", Value: rec.Version},
		{Subject: "started", Value: stamp(rec.Started)},
	}
	if rec.Undoes != "" {
		lines = append(lines, event.Line{Subject: "undoes", Value: rec.Undoes})
	}
	if r.End != nil {
		lines = append(lines, event.Line{Subject: "ended", Value: stamp(r.Ended)},
			event.Line{Subject: "exit code", Value: strconv.Itoa(r.End.ExitCode)})
		lines[0].Value += ", in " + took(r.End.Seconds)
	}
	return append(lines, r.Instance...)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
