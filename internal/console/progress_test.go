package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runbook/internal/event"
)

// locked is a buffer that may be read while progress is written to it.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestProgressInALogIsALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err locked
		text := NewText(Terminal{W: &locked{}}, Terminal{W: &err})
		p := text.Progress(*wal, "deleting objects", 300)
		for range 29 {
			time.Sleep(time.Second)
			p.Add(10)
		}
		synctest.Wait()
		want := "deleting objects: 90 of 300 (30%) about 23s left 9.0/s"
		lines := strings.Split(strings.TrimSpace(err.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "wal: ") {
			t.Fatalf("after 29s:\n%s", err.String())
		}
		if got := strings.TrimPrefix(lines[0], "wal: "); got != want && got != "deleting objects: 100 of 300 (33%) about 20s left 10/s" {
			t.Errorf("got %q", got)
		}
		p.Done()
		p.Done()
		if !strings.HasSuffix(err.String(), "wal: deleting objects: 290 in 29s\n") {
			t.Errorf("the last line is wrong, or came twice:\n%s", err.String())
		}
	})
}

func TestProgressOnATerminalIsOneLineAboveWhichTheRestIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both locked
		terminal := Terminal{W: &both, TTY: true, Width: 80}
		text := NewText(terminal, terminal)
		p := text.Progress(*wal, "waiting for the nodes to remove their files (at most 5m0s)", 48)
		p.Add(12)
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		text.Emit(event.Event{Event: event.Note, Step: wal, Text: "node 2 is slow"})
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		p.Done()
		got := both.String()
		if want := "\r\x1b[K  node 2 is slow\n"; !strings.Contains(got, want) {
			t.Errorf("the note does not replace the progress line: %q", got)
		}
		if !strings.HasSuffix(got, "\r\x1b[Kwal: waiting for the nodes to remove their files (at most 5m0s): 12 in 600ms\n") {
			t.Errorf("the final line does not replace the progress line: %q", got)
		}
	})
}

func TestAProgressLineFitsTheTerminalAndItsNumbersAreWhole(t *testing.T) {
	state := event.Progress{What: "deleting objects", Count: 1234567, Total: 9876543, Rate: 4321, SecondsLeft: 2000}
	parts := progressParts(state)
	for width := minWidth; width < 120; width++ {
		line := fit(parts, width)
		if len(line) >= width {
			t.Errorf("width %d: %q", width, line)
		}
		if !strings.HasPrefix(strings.Join(parts, " ")+" ", line+" ") && line != "" {
			t.Errorf("width %d cuts a part: %q", width, line)
		}
	}
}

func TestProgressInJSONCarriesCountTotalRateAndTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out locked
		j := NewJSON(Terminal{W: &out})
		p := j.Progress(*wal, "deleting objects", 100)
		p.Add(25)
		time.Sleep(eventInterval)
		synctest.Wait()
		j.Close() // ends what the step left open
		var events []event.Event
		for line := range strings.Lines(out.String()) {
			var e event.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if len(events) != 2 {
			t.Fatalf("want one event under way and one at the end:\n%s", out.String())
		}
		if p := events[0].Progress; p.Count != 25 || p.Total != 100 || p.Rate != 12.5 || p.SecondsLeft != 6 || p.Done {
			t.Errorf("under way: %+v", p)
		}
		if p := events[1].Progress; !p.Done || p.Count != 25 {
			t.Errorf("at the end: %+v", p)
		}
	})
}

func TestProgressMayBeCountedByManyGoroutines(t *testing.T) {
	text := NewText(Terminal{W: &locked{}}, Terminal{W: &locked{}, TTY: true, Width: 80})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			p := text.Progress(*wal, "marking", 1000)
			defer p.Done()
			for range 1000 {
				p.Add(1)
			}
		})
	}
	group.Wait()
	text.Close()
}
