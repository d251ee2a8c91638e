package journal

import "time"

// Kind says what a run was for.
type Kind string

// The kinds of run.
const (
	Apply Kind = "apply"
	Undo  Kind = "undo"
)

// Record says who ran what, where and when. It is written before anything is
// done and never changed.
type Record struct {
	ID       string    `json:"id"`
	Kind     Kind      `json:"kind"`
	Plan     string    `json:"plan"`     // its name
	PlanPath string    `json:"planPath"` // as given
	Undoes   string    `json:"undoes,omitempty"`
	Instance string    `json:"instance"` // in one line
	Steps    []Step    `json:"steps"`
	Who      string    `json:"who"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
}

// Step names one step of the plan as applied.
type Step struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}
