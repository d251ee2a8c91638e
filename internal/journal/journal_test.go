package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"runbook/internal/event"
	"runbook/internal/fault"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func newRun(t *testing.T, dir string) *Run {
	t.Helper()
	r, err := create(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func create(dir string, at time.Time) (*Run, error) {
	store, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return store.Create(Record{Kind: Apply, Plan: "cold-switch", Started: at, Steps: []Step{{ID: "wal", Type: "resetWal"}}},
		Contents{Plan: []byte("plan: text\n"), Inputs: map[string]any{"rootPath": "by-dev"},
			Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("sesame"), []byte("********")) }})
}

func codeOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Code
	}
	return ""
}

func TestARunIsReadBackAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	r := newRun(t, dir)
	for _, e := range []event.Event{{Event: event.StepStarted, Text: "one"}, {Event: event.StepDone, Text: "two sesame"}} {
		if err := r.Append(e, true); err != nil {
			t.Fatal(err)
		}
	}
	store, _ := Open(dir)
	for _, id := range []string{r.Record.ID, "last", r.Record.ID[:20], r.Record.ID[len(r.Record.ID)-5:]} {
		past, err := store.Find(id)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if past.Record.Plan != "cold-switch" || !past.Record.Started.Equal(noon) {
			t.Errorf("%s: %+v", id, past.Record)
		}
	}
	past := r.Past()
	events, damaged, err := past.Events()
	if err != nil || len(damaged) > 0 || len(events) != 2 || events[1].Text != "two ********" {
		t.Errorf("events %+v, damaged %v, %v", events, damaged, err)
	}
	var inputs map[string]any
	if err := past.Inputs(&inputs); err != nil || inputs["rootPath"] != "by-dev" {
		t.Errorf("inputs %v, %v", inputs, err)
	}
	if plan, err := past.Plan(); err != nil || string(plan) != "plan: text\n" {
		t.Errorf("plan %q, %v", plan, err)
	}
}

func TestNobodyElseMayReadAJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r := newRun(t, dir)
	image, err := r.BeforeImage("wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := r.Past().WriteReports(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIDsSortByTime(t *testing.T) {
	before := ""
	for i := range 200 {
		id := newID(noon.Add(time.Duration(i) * time.Second))
		if id <= before {
			t.Fatalf("%s sorts before %s", id, before)
		}
		before = id
	}
}

func TestAStateDirectoryThatCannotBeUsedIsRefusedBeforeAnythingElse(t *testing.T) {
	for _, test := range []struct {
		name, code string
		prepare    func(t *testing.T, dir string)
	}{
		{"it is a file", "journal.not-a-folder", func(t *testing.T, dir string) {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"runs in it is a file", "journal.not-a-folder", func(t *testing.T, dir string) {
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "runs"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a run in it is later than now", "journal.clock", func(t *testing.T, dir string) {
			if _, err := create(dir, noon.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			test.prepare(t, dir)
			wantRefused(t, dir, test.code)
		})
	}
}

// wantRefused tries to begin a run there.
func wantRefused(t *testing.T, dir, code string) {
	t.Helper()
	_, err := create(dir, noon)
	if codeOf(err) != code || fault.KindOf(err) != fault.Refused {
		t.Fatalf("want a refusal with code %s, got %v", code, err)
	}
	f, _ := errors.AsType[*fault.Error](err)
	if len(f.Hints) == 0 || !strings.Contains(strings.Join(f.Hints, " "), "--state-dir") {
		t.Errorf("no way out is named: %v", f.Hints)
	}
}

func TestAClockThatIsALittleBehindIsAccepted(t *testing.T) {
	dir := t.TempDir()
	newRun(t, dir)
	if _, err := create(dir, noon.Add(-30*time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestHalfALineAtTheEndOfTheEventsIsReportedAndTheRestIsRead(t *testing.T) {
	r := newRun(t, t.TempDir())
	if err := r.Append(event.Event{Event: event.StepStarted}, true); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.Dir(), eventsFile)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString("not json\n{\"v\":1,\"event\":\"step.do")
	file.Close()
	events, damaged, err := r.Past().Events()
	if err != nil || len(events) != 1 || len(damaged) != 2 ||
		!strings.Contains(damaged[0], "line 2") || !strings.Contains(damaged[1], "line 3 was cut short") {
		t.Errorf("events %+v, damaged %q, %v", events, damaged, err)
	}
	report, err := r.Past().Report()
	if err != nil || report.Outcome() != "not ended" {
		t.Errorf("outcome %s, %v", report.Outcome(), err)
	}
}

func TestABrokenRunDoesNotHideTheOthers(t *testing.T) {
	dir := t.TempDir()
	good := newRun(t, dir)
	broken := filepath.Join(dir, "runs", "20260101T000000Z-aaaaa")
	if err := os.Mkdir(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	store, _ := Open(dir)
	runs, err := store.List()
	if len(runs) != 1 || runs[0].Record.ID != good.Record.ID {
		t.Errorf("listed: %v", runs)
	}
	if err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("the broken one is not named: %v", err)
	}
}

// image writes a before-image and returns its file.
func image(t *testing.T, content string) *Image {
	t.Helper()
	r := newRun(t, t.TempDir())
	w, err := r.BeforeImage("wal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if images, _ := r.Past().Images(); len(images) != 0 {
		t.Error("the image is there before Commit")
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	images, err := r.Past().Images()
	if err != nil || len(images) != 1 || images[0].Step != "wal" {
		t.Fatalf("images %v, %v", images, err)
	}
	if _, err := r.BeforeImage("wal"); codeOf(err) != "journal.image-exists" {
		t.Errorf("a second image of the same step: %v", err)
	}
	return images[0]
}

func TestABeforeImageIsReadBackAsItWasWritten(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":     "",
		"one line":    "one line\n",
		"much":        strings.Repeat("by-dev/meta/datacoord-meta/s/1/2/3\n", 100_000),
		"every octet": string([]byte{0, 1, 0xff, '\n', 0}),
	} {
		t.Run(name, func(t *testing.T) {
			i := image(t, content)
			r, err := i.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, err := io.ReadAll(r); err != nil || string(got) != content {
				t.Errorf("%d bytes, want %d, %v", len(got), len(content), err)
			}
			// Any zstd program reads the file as it is.
			file, err := os.ReadFile(i.Path)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := zstd.NewReader(bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(plain); err != nil || string(got) != content {
				t.Errorf("by zstd: %d bytes, want %d, %v", len(got), len(content), err)
			}
		})
	}
}

func TestADamagedBeforeImageIsAnErrorBeforeItsFirstByte(t *testing.T) {
	i := image(t, strings.Repeat("some key and some value\n", 50))
	whole, err := os.ReadFile(i.Path)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, n int, data []byte) {
		t.Helper()
		if err := os.WriteFile(i.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := i.Open(); codeOf(err) != "journal.image-damaged" {
			t.Errorf("%s %d: %v, %v", what, n, r, err)
		}
	}
	for n := range whole {
		refuse("cut to", n, whole[:n])
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		refuse("a bit changed at", n, flipped)
	}
	refuse("grown by", 1, append(bytes.Clone(whole), 0))
	refuse("doubled", 0, append(bytes.Clone(whole), whole...))
}
