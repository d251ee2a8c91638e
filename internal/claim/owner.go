package claim

import (
	"encoding/json"
	"fmt"
	"time"
)

// Owner says whose run it is.
type Owner struct {
	RunID   string    `json:"runId"`
	Plan    string    `json:"plan"`
	Who     string    `json:"who"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
}

// String names the run the way an operator looks for it.
func (o Owner) String() string {
	return fmt.Sprintf("run %s of plan %s by %s on %s (pid %d) since %s",
		o.RunID, o.Plan, o.Who, o.Host, o.PID, o.Since.UTC().Format(time.RFC3339))
}

// Holder is the value of the lock: who holds the instance now.
type Holder struct {
	Owner
	Step    string  `json:"step,omitempty"`
	Process process `json:"process"`

	// TTL is the time left on the lock's lease; known only from Read.
	TTL time.Duration `json:"-"`

	lease int64
}

// String names the holder, and its step.
func (h Holder) String() string {
	switch {
	case h.RunID == "":
		return "an unknown run"
	case h.Step == "":
		return h.Owner.String() + ", before its first step"
	default:
		return h.Owner.String() + ", in step " + h.Step
	}
}

// Gone reports whether the holder is certainly dead: then a run takes the lock
// over at once. In doubt it is not.
func (h Holder) Gone() bool { return h.Process.gone() }

func (h Holder) encode() string {
	data, _ := json.Marshal(h) // strings, numbers and times only
	return string(data)
}

// decodeHolder reads what it can: whatever the value, the lock is held.
func decodeHolder(value []byte) Holder {
	var h Holder
	_ = json.Unmarshal(value, &h)
	return h
}
