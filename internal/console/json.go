package console

import (
	"encoding/json"
	"sync"
	"time"

	"runbook/internal/event"
)

// JSON prints events, one object a line.
type JSON struct {
	out   Terminal
	board board

	mu  sync.Mutex
	run string // id of the run under way, for the progress of its steps
}

// NewJSON prints to out.
func NewJSON(out Terminal) *JSON {
	j := &JSON{out: out}
	j.board = board{interval: eventInterval, now: time.Now, show: j.showProgress, finished: j.progressDone}
	return j
}

// Emit prints one event. A reader that went away does not stop the command.
func (j *JSON) Emit(e event.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Event == event.ProgressMade {
		e.Run = j.run
	} else {
		j.run = e.Run
	}
	encoder := json.NewEncoder(j.out.W)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(e)
}

// Progress starts a counted piece of work of a step; total 0 is not known.
func (j *JSON) Progress(step event.Step, what string, total int64) *Progress {
	return j.board.add(step, what, total)
}

// Close ends what is still shown as under way.
func (j *JSON) Close() { j.board.close() }

func (j *JSON) showProgress(active []*Progress) {
	now := time.Now()
	for _, p := range active {
		j.emitProgress(p, p.state(now, false), now)
	}
}

func (j *JSON) progressDone(p *Progress, at time.Time) { j.emitProgress(p, p.state(at, true), at) }

func (j *JSON) emitProgress(p *Progress, state event.Progress, at time.Time) {
	j.Emit(event.Event{V: event.Version, Time: at.UTC(), Event: event.ProgressMade, Step: &p.step, Progress: &state})
}
