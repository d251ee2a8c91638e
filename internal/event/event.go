// Package event is what happens while a plan is applied, as data: one versioned
// object for each thing that happens. The console renders events, the journal
// keeps them, reports are made from them; none of that happens here.
package event

import "time"

// Version is the version of the objects that `-o json` prints and the journal
// keeps. It grows when a field changes its meaning or disappears.
const Version = 1

// Name says what happened. Names are stable.
type Name string

// The events, in the order in which a run meets them.
const (
	Diagnosed     Name = "diagnostic"     // error: one thing that is wrong with the plan
	PlanLoaded    Name = "plan.loaded"    // plan, lines: the instance
	RunStarted    Name = "run.started"    // run, start
	LeftFound     Name = "left.found"     // lines: what an earlier run left half done
	LockHeld      Name = "lock.held"      // lines: who holds the instance, seen by a dry run
	StepPreviewed Name = "step.previewed" // step, requires, lines, warnings, changes, outputs, provides
	Expected      Name = "expectation"    // step, expectation
	PreviewDone   Name = "preview.done"   // changes
	StepStarted   Name = "step.started"   // step, text: its summary
	FactSeen      Name = "fact"           // step, fact
	Note          Name = "note"           // text
	Warning       Name = "warning"        // text
	ProgressMade  Name = "progress"       // progress
	StepDone      Name = "step.done"      // step, lines, outputs, seconds
	StepFailed    Name = "step.failed"    // step, error, seconds
	Ended         Name = "ended"          // end; of a dry run too
)

// Event is one thing that happened. Fields that do not apply are absent.
type Event struct {
	V           int          `json:"v"`
	Time        time.Time    `json:"time"`
	Event       Name         `json:"event"`
	Run         string       `json:"run,omitempty"`
	Step        *Step        `json:"step,omitempty"`
	Plan        *Plan        `json:"plan,omitempty"`
	Start       *Start       `json:"start,omitempty"`
	Text        string       `json:"text,omitempty"`
	Lines       []Line       `json:"lines,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`
	Changes     *bool        `json:"changes,omitempty"`
	Requires    []Fact       `json:"requires,omitempty"`
	Provides    []Fact       `json:"provides,omitempty"`
	Fact        *Fact        `json:"fact,omitempty"`
	Expectation *Expectation `json:"expectation,omitempty"`
	Progress    *Progress    `json:"progress,omitempty"`
	Outputs     any          `json:"outputs,omitempty"`
	Seconds     float64      `json:"seconds,omitempty"`
	Error       *Error       `json:"error,omitempty"`
	End         *End         `json:"end,omitempty"`
}

// Line is one row that people read: a subject, a value, and details below it.
type Line struct {
	Subject string   `json:"subject"`
	Value   string   `json:"value"`
	Detail  []string `json:"detail,omitempty"`
}

// Step names the step that an event is about.
type Step struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Number int    `json:"number"` // from 1
	Of     int    `json:"of"`
}

// Plan names the plan that is applied.
type Plan struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	DryRun bool   `json:"dryRun"`
}

// Start says who runs what, where.
type Start struct {
	Who     string `json:"who"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Journal string `json:"journal"` // the run's folder
}

// FactState says how a fact is known.
type FactState string

// The states of a fact.
const (
	Assumed  FactState = "assumed"  // an earlier step will provide it; a dry run cannot know
	Verified FactState = "verified" // checked against the instance just now
	Provided FactState = "provided" // checked right after the step that provides it
)

// Fact is a statement about the instance and how it is known.
type Fact struct {
	Name  string    `json:"name"`
	State FactState `json:"state"`
	By    string    `json:"by"` // id of the step that provides it
}

// Expectation is a condition of a step's expect section, evaluated.
type Expectation struct {
	Source    string `json:"source"`
	OK        bool   `json:"ok"`
	Operands  string `json:"operands,omitempty"`
	Predicted bool   `json:"predicted,omitempty"` // over predicted outputs, in a dry run
}

// Progress is how far a counted piece of work has come.
type Progress struct {
	What        string  `json:"what"`
	Count       int64   `json:"count"`
	Total       int64   `json:"total,omitempty"`       // 0: not known
	Rate        float64 `json:"rate"`                  // per second, since the start
	SecondsLeft float64 `json:"secondsLeft,omitempty"` // absent: not known
	Done        bool    `json:"done,omitempty"`
}

// Outcome says how a run ended, in one word.
type Outcome string

// The outcomes, one for each kind of error and one for none.
const (
	Done        Outcome = "done"
	Failed      Outcome = "failed"
	Invalid     Outcome = "invalid"
	Refused     Outcome = "refused"
	Locked      Outcome = "locked"
	Interrupted Outcome = "interrupted"
)

// End says how a run ended and what is left.
type End struct {
	Outcome  Outcome  `json:"outcome"`
	ExitCode int      `json:"exitCode"`
	Changed  bool     `json:"changed"` // something may have been changed on some tier
	Done     []string `json:"done,omitempty"`
	Left     []string `json:"left,omitempty"` // ids of the steps not finished
	Seconds  float64  `json:"seconds"`
	Error    *Error   `json:"error,omitempty"`
}
