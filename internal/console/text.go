package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"runbook/internal/event"
)

// Text prints events for people.
type Text struct {
	out, err Terminal
	board    board

	mu       sync.Mutex
	updating bool // the last line of the terminal is the progress line
}

// NewText prints results to out and the rest to err.
func NewText(out, err Terminal) *Text {
	t := &Text{out: out, err: err}
	t.board = board{interval: logInterval, now: time.Now, show: t.showProgress, finished: t.progressDone}
	if err.TTY {
		t.board.interval = eyeInterval
	}
	return t
}

// Progress starts a counted piece of work of a step; total 0 is not known.
func (t *Text) Progress(step event.Step, what string, total int64) *Progress {
	return t.board.add(step, what, total)
}

// Close ends what is still shown as under way.
func (t *Text) Close() { t.board.close() }

// Emit prints one event. A reader that went away does not stop the command.
func (t *Text) Emit(e event.Event) {
	render, ok := renderers[e.Event]
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	terminal := t.err
	if isResult(e) {
		terminal = t.out
	}
	var b strings.Builder
	render(terminal, &b, e)
	t.print(terminal, b.String())
}

// print writes whole lines, above the progress line if there is one.
func (t *Text) print(terminal Terminal, text string) {
	if text == "" {
		return
	}
	t.clear()
	_, _ = io.WriteString(terminal.W, text)
}

func (t *Text) clear() {
	if t.updating {
		_, _ = io.WriteString(t.err.W, "\r\x1b[K")
		t.updating = false
	}
}

func (t *Text) showProgress(active []*Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.err.TTY {
		for _, p := range active {
			t.print(t.err, t.progressLine(p, p.state(now, false))+"\n")
		}
		return
	}
	// The newest piece of work is the one that moves.
	p := active[len(active)-1]
	t.clear()
	_, _ = io.WriteString(t.err.W, t.progressLine(p, p.state(now, false)))
	t.updating = true
}

func (t *Text) progressLine(p *Progress, state event.Progress) string {
	parts := progressParts(state)
	line := fit(parts, t.err.Width)
	if withStep := fit(append([]string{p.step.ID + ":"}, parts...), t.err.Width); strings.HasSuffix(withStep, line) {
		return withStep
	}
	return line
}

func (t *Text) progressDone(p *Progress, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := p.state(at, true)
	text := fmt.Sprintf("%s: %d in %s", state.What, state.Count, duration(at.Sub(p.start)))
	if p.step.ID != "" {
		text = p.step.ID + ": " + text
	}
	var b strings.Builder
	t.err.text(&b, 0, "", "", text)
	t.print(t.err, b.String())
}
