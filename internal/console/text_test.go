package console

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/event"
	"runbook/internal/fault"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

var (
	stopped = &event.Step{ID: "stopped", Type: "assertStopped", Number: 1, Of: 2}
	wal     = &event.Step{ID: "wal", Type: "resetWal", Number: 2, Of: 2}
)

// dryRun is what a dry run that found something emits.
func dryRun() []event.Event {
	return []event.Event{
		{Event: event.PlanLoaded, Plan: &event.Plan{Name: "cold-switch", Path: "plans/cold-switch.yaml", DryRun: true}, Lines: []event.Line{
			{Subject: "etcd", Value: "127.0.0.1:2379, root by-dev, metadata under by-dev/meta"},
			{Subject: "objects", Value: "127.0.0.1:9000, bucket a-bucket, wal under files/wp"},
		}},
		{Event: event.LeftFound, Text: "an earlier run left this instance half done; applying this plan finishes it",
			Lines: []event.Line{{Value: "left by run 1 of plan cold-switch by operator on host-a (pid 7) since 2026-12-01T05:00:00Z"}}},
		{Event: event.StepPreviewed, Step: stopped, Changes: no(),
			Lines:    []event.Line{{Subject: "milvus", Value: "stopped", Detail: []string{"no session under by-dev/meta/session/ in etcd"}}},
			Provides: []event.Fact{{Name: "milvusStopped", State: event.Verified, By: "stopped"}}},
		{Event: event.StepPreviewed, Step: wal, Changes: yes(),
			Requires: []event.Fact{{Name: "milvusStopped", State: event.Verified, By: "stopped"}},
			Lines: []event.Line{
				{Subject: "metadata", Value: "16 logs, 0 parked, 32 segments, 48 keys at by-dev/woodpecker"},
				{Subject: "log id counter", Value: "1234567890123456789, kept"},
			},
			Warnings: []string{"3 objects under files/wp/ do not match the layout and are left: files/wp/notes.txt, files/wp/7/, files/wp/x"},
			Provides: []event.Fact{{Name: "walEmpty", State: event.Assumed, By: "wal"}}},
		{Event: event.Expected, Step: wal, Expectation: &event.Expectation{Predicted: true, OK: true,
			Source: "outputs.logIdCounter.after >= outputs.logIdCounter.before", Operands: "outputs.logIdCounter.after is 16, outputs.logIdCounter.before is 16"}},
		{Event: event.PreviewDone, Changes: yes()},
		{Event: event.Ended, End: &event.End{Outcome: event.Done}, Text: "nothing was written; to do it: runbook apply plans/cold-switch.yaml --run"},
	}
}

// failedRun is what a run that fails in its second step emits.
func failedRun() []event.Event {
	err := fault.Fail("wal.node", "2 of 3 nodes did not answer").At("10.0.0.2:18080").
		Because(errors.New("connection refused")).Hint("start the node, then apply the same plan again")
	return []event.Event{
		{Event: event.RunStarted, Run: "20261201T050000Z-abcde", Start: &event.Start{Journal: "/state/runs/20261201T050000Z-abcde"}},
		{Event: event.StepStarted, Step: stopped, Text: "prove that milvus is stopped"},
		{Event: event.Note, Step: stopped, Text: "waiting up to 40s for 1 sessions to end: proxy 5 at 10.0.0.9:19530, lease ends in 21s unless kept alive"},
		{Event: event.FactSeen, Step: stopped, Fact: &event.Fact{Name: "milvusStopped", State: event.Provided, By: "stopped"}},
		{Event: event.StepDone, Step: stopped, Seconds: 12.3456, Lines: []event.Line{{Subject: "milvus", Value: "stopped"}}},
		{Event: event.StepStarted, Step: wal, Text: "empty the woodpecker WAL"},
		{Event: event.FactSeen, Step: wal, Fact: &event.Fact{Name: "milvusStopped", State: event.Verified, By: "stopped"}},
		{Event: event.Warning, Step: wal, Text: "node 10.0.0.3:18080 is slow"},
		{Event: event.StepFailed, Step: wal, Error: event.ErrorOf(err)},
		{Event: event.Ended, End: &event.End{Outcome: event.Failed, ExitCode: 1, Error: event.ErrorOf(fmt.Errorf("step wal: %w", err))},
			Lines: []event.Line{{Subject: "steps done:", Value: "stopped"}, {Subject: "steps left:", Value: "wal"}},
			Text:  "the instance is marked as half done (by-dev/runbook/in-progress): do not start milvus; apply the same plan again, it finishes what is left"},
	}
}

// session shows events and marks which stream each part went to.
func session(events []event.Event, width int, color bool) string {
	var b bytes.Buffer
	t := NewText(Terminal{W: marking{&b, "out"}, Width: width, Color: color}, Terminal{W: marking{&b, "err"}, Width: width, Color: color})
	for _, e := range events {
		t.Emit(e)
	}
	t.Close()
	return b.String()
}

type marking struct {
	b    *bytes.Buffer
	name string
}

func (m marking) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		fmt.Fprintf(m.b, "%s| %s", m.name, line)
	}
	return len(p), nil
}

func TestTextReadsAsASession(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []event.Event
		width  int
		color  bool
	}{
		{"dry-run-pipe.txt", dryRun(), 0, false},
		{"dry-run-80.txt", dryRun(), 80, false},
		{"dry-run-40.txt", dryRun(), 40, false},
		{"dry-run-color.txt", dryRun(), 120, true},
		{"failed-pipe.txt", failedRun(), 0, false},
		{"failed-60.txt", failedRun(), 60, false},
	} {
		t.Run(test.name, func(t *testing.T) { golden(t, test.name, session(test.events, test.width, test.color)) })
	}
}

func TestNoWordIsCutAndNoLineIsLongerThanItsLongestWordDemands(t *testing.T) {
	words := func(s string) string {
		s = strings.NewReplacer("out| ", "", "err| ", "").Replace(s)
		return strings.Join(strings.Fields(s), " ")
	}
	for _, events := range [][]event.Event{dryRun(), failedRun()} {
		plain := words(session(events, 0, false))
		for width := minWidth; width < 130; width++ {
			got := session(events, width, false)
			if words(got) != plain {
				t.Fatalf("width %d loses or cuts words:\n%s", width, got)
			}
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")[len("out| "):]
				text := strings.TrimLeft(line, " -")
				if utf8.RuneCountInString(line) > width && strings.Contains(text, " ") && width >= 60 {
					t.Errorf("width %d: %d columns: %q", width, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

func TestColourSaysNothingThatTheWordsDoNot(t *testing.T) {
	escapes := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31;1m", "", "\x1b[33m", "")
	for _, events := range [][]event.Event{dryRun(), failedRun()} {
		if diff := cmp.Diff(session(events, 100, false), escapes.Replace(session(events, 100, true))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestJSONIsOneVersionedObjectALine(t *testing.T) {
	var b bytes.Buffer
	j := NewJSON(Terminal{W: &b})
	at := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	for _, e := range append(dryRun(), failedRun()...) {
		e.V, e.Time = event.Version, at
		j.Emit(e)
	}
	j.Close()
	golden(t, "events.jsonl", b.String())
}
