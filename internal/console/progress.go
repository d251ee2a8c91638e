package console

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"runbook/internal/event"
)

// How often progress is shown: to an eye, in a log, to a program.
const (
	eyeInterval   = 200 * time.Millisecond
	logInterval   = 10 * time.Second
	eventInterval = 2 * time.Second
)

// Progress is one counted piece of work of a step.
type Progress struct {
	step  event.Step
	what  string
	total int64
	start time.Time
	count atomic.Int64
	board *board
}

// Add counts n more; it may be called concurrently.
func (p *Progress) Add(n int64) { p.count.Add(n) }

// Done ends the piece of work; calling it again does nothing.
func (p *Progress) Done() { p.board.remove(p) }

func (p *Progress) state(now time.Time, done bool) event.Progress {
	s := event.Progress{What: p.what, Count: p.count.Load(), Total: p.total, Done: done}
	elapsed := now.Sub(p.start).Seconds()
	if elapsed <= 0 {
		return s
	}
	s.Rate = float64(s.Count) / elapsed
	if !done && s.Rate > 0 && s.Total > s.Count {
		s.SecondsLeft = float64(s.Total-s.Count) / s.Rate
	}
	return s
}

// board holds the pieces of work under way and shows them at its interval, from
// one goroutine that lives as long as there is any.
type board struct {
	interval time.Duration
	now      func() time.Time
	show     func(active []*Progress)        // at each interval
	finished func(p *Progress, at time.Time) // once for each

	mu     sync.Mutex
	active []*Progress
	stop   chan struct{}
	ended  chan struct{}
}

func (b *board) add(step event.Step, what string, total int64) *Progress {
	p := &Progress{step: step, what: what, total: total, start: b.now(), board: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active = append(b.active, p)
	if len(b.active) == 1 {
		b.stop, b.ended = make(chan struct{}), make(chan struct{})
		go b.tick(b.stop, b.ended)
	}
	return p
}

func (b *board) remove(p *Progress) {
	b.mu.Lock()
	i := slices.Index(b.active, p)
	if i < 0 {
		b.mu.Unlock()
		return
	}
	b.active = slices.Delete(b.active, i, i+1)
	var ended chan struct{}
	if len(b.active) == 0 {
		close(b.stop)
		ended = b.ended
	}
	b.mu.Unlock()
	if ended != nil {
		<-ended
	}
	b.finished(p, b.now())
}

// close ends what a step left open.
func (b *board) close() {
	b.mu.Lock()
	left := slices.Clone(b.active)
	b.mu.Unlock()
	for _, p := range left {
		b.remove(p)
	}
}

func (b *board) tick(stop, ended chan struct{}) {
	defer close(ended)
	ticker := time.NewTicker(b.interval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			b.mu.Lock()
			active := slices.Clone(b.active)
			b.mu.Unlock()
			if len(active) > 0 {
				b.show(active)
			}
		}
	}
}

// progressParts says how far a piece of work is, the most telling part first.
func progressParts(p event.Progress) []string {
	parts := []string{p.What + ":", fmt.Sprint(p.Count)}
	if p.Total > 0 {
		parts[1] = fmt.Sprintf("%d of %d", p.Count, p.Total)
		parts = append(parts, fmt.Sprintf("(%d%%)", min(100, p.Count*100/p.Total)))
	}
	if p.SecondsLeft > 0 {
		left := time.Duration(p.SecondsLeft * float64(time.Second))
		parts = append(parts, "about "+duration(left)+" left")
	}
	if p.Rate > 0 {
		parts = append(parts, rate(p.Rate))
	}
	return parts
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return fmt.Sprintf("%.0f/s", perSecond)
}

// fit joins as many parts as one line holds; no part is cut.
func fit(parts []string, width int) string {
	line := ""
	for _, part := range parts {
		longer := strings.TrimSpace(line + " " + part)
		if width > 0 && utf8.RuneCountInString(longer) >= width {
			break
		}
		line = longer
	}
	return line
}

// duration rounds to what a person wants to know.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
