package journal

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/event"
	"runbook/internal/fault"
)

var update = flag.Bool("update", false, "write the golden files")

// eventful is a run that warns, fails and leaves something.
func eventful(t *testing.T) *Report {
	t.Helper()
	dir := t.TempDir()
	store, _ := Open(dir)
	r, err := store.Create(Record{Kind: Apply, Plan: "cold-switch", PlanPath: "plans/cold-switch.yaml", Who: "operator",
		Host: "host-a", PID: 7, Version: "v1.0.0", Started: noon, Instance: "etcd 127.0.0.1:2379 root by-dev",
		Steps: []Step{{"stopped", "assertStopped"}, {"wal", "resetWal"}, {"positions", "resetCheckpoint"}}}, Contents{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stopped := &event.Step{ID: "stopped", Type: "assertStopped", Number: 1, Of: 3}
	wal := &event.Step{ID: "wal", Type: "resetWal", Number: 2, Of: 3}
	failure := fault.Fail("wal.node", "node 10.0.0.2:18080 <did> not | answer").Hint("start it, then apply the same plan again")
	for i, e := range []event.Event{
		{Event: event.PlanLoaded, Lines: []event.Line{{Subject: "etcd", Value: "127.0.0.1:2379, root by-dev"}}},
		{Event: event.LeftFound, Lines: []event.Line{{Value: "left by run x"}}},
		{Event: event.StepPreviewed, Step: stopped, Lines: []event.Line{{Subject: "milvus", Value: "stopped", Detail: []string{"no session", "no listener"}}}},
		{Event: event.StepPreviewed, Step: wal, Warnings: []string{"3 objects are not woodpecker's"}, Lines: []event.Line{
			{Subject: "metadata", Value: "16 logs, 32 segments"}, {Subject: "log id counter", Value: "16, kept"}}},
		{Event: event.Expected, Step: wal, Expectation: &event.Expectation{Predicted: true, Source: "x", OK: true}},
		{Event: event.RunStarted},
		{Event: event.StepStarted, Step: stopped},
		{Event: event.FactSeen, Step: stopped, Fact: &event.Fact{Name: "milvusStopped", State: event.Provided, By: "stopped"}},
		{Event: event.StepDone, Step: stopped, Seconds: 1.25, Lines: []event.Line{{Subject: "milvus", Value: "stopped"}}},
		{Event: event.StepStarted, Step: wal},
		{Event: event.FactSeen, Step: wal, Fact: &event.Fact{Name: "milvusStopped", State: event.Verified, By: "stopped"}},
		{Event: event.Expected, Step: wal, Expectation: &event.Expectation{Source: "outputs.a <= 3", OK: true, Operands: "outputs.a is 2"}},
		{Event: event.Note, Step: wal, Text: "waiting for node 2"},
		{Event: event.Warning, Step: wal, Text: "node 2 is slow"},
		{Event: event.StepFailed, Step: wal, Seconds: 61, Error: event.ErrorOf(failure)},
		{Event: event.Ended, Text: "apply the same plan again", End: &event.End{Outcome: event.Failed, ExitCode: 1, Seconds: 62.25, Error: event.ErrorOf(failure)}},
	} {
		e.V, e.Time = event.Version, noon.Add(time.Duration(i)*time.Second)
		if err := r.Append(e, false); err != nil {
			t.Fatal(err)
		}
	}
	image, err := r.BeforeImage("positions")
	if err == nil {
		err = image.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Past().Report()
	if err != nil {
		t.Fatal(err)
	}
	report.Record.ID = "20261201T120000Z-abcde"
	report.Images[0].Path = "/state/runs/20261201T120000Z-abcde/positions.before.zst"
	return report
}

func TestReportsReadAsTheyDid(t *testing.T) {
	report := eventful(t)
	for name, render := range map[string]func(io.Writer) error{"report.md": report.Markdown, "report.html": report.HTML} {
		var b bytes.Buffer
		if err := render(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestAReportSaysWhatAChangeTicketNeeds(t *testing.T) {
	report := eventful(t)
	for name, render := range map[string]func(io.Writer) error{"Markdown": report.Markdown, "HTML": report.HTML} {
		var b bytes.Buffer
		if err := render(&b); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"operator on host-a", "v1.0.0", "2026-12-01 12:00:00 UTC", "failed", "16 logs, 32 segments",
			"milvusStopped", "outputs.a", "node 2 is slow", "3 objects are not woodpecker", "start it, then apply", "left by run x", "positions.before.zst"} {
			if !strings.Contains(b.String(), word) {
				t.Errorf("the %s report does not say %q", name, word)
			}
		}
	}
}

func TestTheHTMLReportNeedsNothingElseAndEscapesWhatItShows(t *testing.T) {
	var b bytes.Buffer
	if err := eventful(t).HTML(&b); err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)(src|href)=|@import|url\(|<script|<did>`).FindString(b.String()); found != "" {
		t.Errorf("found %q", found)
	}
}

func TestAReportOfARunThatWasKilledSaysThatItHasNoEnd(t *testing.T) {
	r := newRun(t, t.TempDir())
	if err := r.Append(event.Event{Event: event.StepStarted, Step: &event.Step{ID: "wal", Type: "resetWal", Number: 1, Of: 1}, Time: noon}, true); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Past().WriteReports(), r.Past().WriteReports()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Dir(), MarkdownFile))
	if err != nil || !strings.Contains(string(text), "has no end") || !strings.Contains(string(text), "not finished") {
		t.Errorf("%v\n%s", err, text)
	}
}
