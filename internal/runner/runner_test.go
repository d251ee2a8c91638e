package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
	"runbook/internal/journal"
	"runbook/internal/labtest"
)

// Each test has an instance of its own in one lab.
func TestRunner(t *testing.T) {
	lab := labtest.Start(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, w *world)
	}{
		{"a preview writes nothing, assumes facts and hands predicted outputs on", testPreview},
		{"in a preview of an instance that is done already every fact is verified", testPreviewDone},
		{"a refusal in the preview changes nothing", testPreviewRefused},
		{"a run does every step, removes its marker and gives the lock back", testRun},
		{"a run of a plan that is done already changes nothing", testRunTwice},
		{"a refusal before anything changed stays a refusal", testRefusedFirst},
		{"a refusal after something changed is a failure, and applying again finishes", testRefusedLater},
		{"a fact that does not hold after its step fails the run", testLie},
		{"a fact is checked again immediately before the step that requires it", testFactBroken},
		{"an expectation that is not met fails the run at its place in the plan", testExpectation},
		{"the first request to stop ends the run after the unit under way", testStop},
		{"the second request to stop ends the unit under way too", testAbort},
		{"a step that was not verified before the stop counts as left", testStopLate},
		{"a lock that is lost ends the run", testLockLost},
		{"a second run is locked out", testLocked},
		{"a plan that does not finish what was left is refused, unless it destroys nothing", testUnfinished},
		{"a journal that cannot be written ends the run before the next effect", testJournalBroken},
		{"undo puts back what a run changed", testUndo},
		{"undo of a run without before-images is refused", testUndoNothing},
		{"undo of a part of what was left leaves the instance marked", testUndoPart},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newWorld(t, lab)) })
	}
}

func background() *interrupt.Context { return interrupt.New(context.Background()) }

func testPreview(t *testing.T, w *world) {
	before := w.revision(t)
	r, seen := w.runner(t, fullPlan)
	p, err := r.Preview(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if after := w.revision(t); after != before {
		t.Errorf("etcd's revision went from %d to %d", before, after)
	}
	if !p.Changes {
		t.Error("there is something to change")
	}
	previews := seen.of(event.StepPreviewed)
	want := [][]string{
		{"milvusStopped verified"},
		{"milvusStopped verified", "walEmpty assumed"},
		{"milvusStopped verified", "walEmpty assumed", "positionsReset assumed"},
		{"walEmpty assumed"},
	}
	for i, e := range previews {
		if diff := cmp.Diff(want[i], facts(e)); diff != "" {
			t.Errorf("step %s:\n%s", e.Step.ID, diff)
		}
	}
	if got := previews[3].Lines[0].Value; got != "5" {
		t.Errorf("resume was previewed with floor %s, wipe predicts 5", got)
	}
	if x := seen.of(event.Expected); len(x) != 1 || !x[0].Expectation.Predicted || !x[0].Expectation.OK {
		t.Errorf("expectations: %+v", x)
	}
}

func testPreviewDone(t *testing.T, w *world) {
	w.apply(t, fullPlan, background()).want(t, event.Done, true, "calm wipe rewrite resume")
	r, seen := w.runner(t, fullPlan)
	p, err := r.Preview(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if p.Changes {
		t.Error("there is nothing to change")
	}
	for _, e := range seen.of(event.StepPreviewed) {
		for _, fact := range facts(e) {
			if !strings.HasSuffix(fact, "verified") {
				t.Errorf("step %s: %s", e.Step.ID, fact)
			}
		}
	}
}

func testPreviewRefused(t *testing.T, w *world) {
	before := w.revision(t)
	r, _ := w.runner(t, "\n  - {id: calm, type: calm}\n  - {id: wipe, type: wipe, with: {limit: 3}}\n")
	_, err := r.Preview(t.Context(), false)
	if fault.KindOf(err) != fault.Refused || !strings.HasPrefix(err.Error(), "step wipe: 5 keys") {
		t.Fatalf("got %v", err)
	}
	if after := w.revision(t); after != before {
		t.Error("a refusal wrote something")
	}
}

func testRun(t *testing.T, w *world) {
	a := w.apply(t, fullPlan, background())
	a.want(t, event.Done, true, "calm wipe rewrite resume")
	if marker, _ := w.marker(t); marker != nil {
		t.Errorf("the marker is still there: %+v", marker)
	}
	if w.get(t, "data/0") != "" || w.get(t, "position") != "new" {
		t.Error("not everything was done")
	}
	if diff := cmp.Diff([]int{5}, w.resumed); diff != "" {
		t.Errorf("what wipe returned did not reach resume:\n%s", diff)
	}
	// A fact is verified right after the step that provides it and right before each that requires it.
	var got []string
	for _, e := range a.seen.of(event.FactSeen) {
		got = append(got, e.Step.ID+" "+e.Fact.Name+" "+string(e.Fact.State))
	}
	want := []string{"calm milvusStopped provided", "wipe milvusStopped verified", "wipe walEmpty provided",
		"rewrite milvusStopped verified", "rewrite walEmpty verified", "rewrite positionsReset provided", "resume walEmpty verified"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func testRunTwice(t *testing.T, w *world) {
	w.apply(t, fullPlan, background()).want(t, event.Done, true, "calm wipe rewrite resume")
	w.apply(t, fullPlan, background()).want(t, event.Done, false, "calm wipe rewrite resume")
}

func testRefusedFirst(t *testing.T, w *world) {
	r, seen := w.runner(t, fullPlan)
	p, err := r.Preview(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "meta/session/proxy-1", "{}")
	a := w.carryOut(t, r, seen, p, background())
	a.want(t, event.Refused, false, "")
	if marker, _ := w.marker(t); marker != nil {
		t.Error("marked as half done although nothing was changed")
	}
}

func testRefusedLater(t *testing.T, w *world) {
	w.resume = func(resumeInputs) error {
		return fault.Refuse("resume.not-now", "not now").Hint("come back later")
	}
	a := w.apply(t, fullPlan, background())
	a.want(t, event.Failed, true, "calm wipe rewrite")
	if e := event.ErrorOf(a.err); e.Code != "resume.not-now" || len(e.Hints) != 1 {
		t.Errorf("the cause got lost: %+v", e)
	}
	w.resume = nil
	w.apply(t, fullPlan, background()).want(t, event.Done, false, "calm wipe rewrite resume")
}

func testLie(t *testing.T, w *world) {
	w.wipeLies = true
	a := w.apply(t, fullPlan, background())
	a.want(t, event.Failed, true, "calm")
	if !strings.Contains(a.err.Error(), "walEmpty does not hold") {
		t.Errorf("got %v", a.err)
	}
	marker, _ := w.marker(t)
	if marker == nil || strings.Join(marker.Owes, " ") != "walEmpty positionsReset" {
		t.Fatalf("the marker is %+v", marker)
	}
	w.wipeLies = false
	w.apply(t, fullPlan, background()).want(t, event.Done, true, "calm wipe rewrite resume")
	if marker, _ := w.marker(t); marker != nil {
		t.Error("the second run left the marker of the first")
	}
}

func testFactBroken(t *testing.T, w *world) {
	a := w.apply(t, `
  - {id: calm, type: calm}
  - {id: wipe, type: wipe}
  - {id: disturb, type: disturb}
  - {id: rewrite, type: rewrite}
`, background())
	a.want(t, event.Failed, true, "calm wipe disturb")
	if !strings.Contains(a.err.Error(), "step rewrite: walEmpty does not hold") {
		t.Errorf("got %v", a.err)
	}
	if w.get(t, "position") != "old" {
		t.Error("the step ran all the same")
	}
}

func testExpectation(t *testing.T, w *world) {
	a := w.apply(t, "\n  - {id: calm, type: calm}\n  - {id: wipe, type: wipe, expect: [outputs.removed == 4]}\n", background())
	a.want(t, event.Failed, true, "calm")
	if !strings.Contains(a.err.Error(), "plan.yaml:") || !strings.Contains(a.err.Error(), "outputs.removed is 5") {
		t.Errorf("got %v", a.err)
	}
	if marker, _ := w.marker(t); marker == nil {
		t.Error("the marker is gone although the step did not do what was expected")
	}
}

func testStop(t *testing.T, w *world) {
	ctx := background()
	w.inUnit = func(context.Context) { ctx.Stop() }
	a := w.apply(t, fullPlan, ctx)
	a.want(t, event.Interrupted, true, "calm")
	if w.get(t, "data/0") != "" || w.get(t, "data/1") == "" {
		t.Error("the unit under way was not finished, or another one was begun")
	}
	if fault.KindOf(a.err).ExitCode() != 130 {
		t.Errorf("exit code %d", fault.KindOf(a.err).ExitCode())
	}
	w.inUnit = nil
	w.apply(t, fullPlan, background()).want(t, event.Done, true, "calm wipe rewrite resume")
}

func testAbort(t *testing.T, w *world) {
	ctx := background()
	w.inUnit = func(context.Context) {
		ctx.Stop()
		ctx.Abort(nil)
	}
	a := w.apply(t, fullPlan, ctx)
	a.want(t, event.Interrupted, false, "calm")
	if w.get(t, "data/0") == "" {
		t.Error("the unit under way was finished all the same")
	}
}

func testStopLate(t *testing.T, w *world) {
	ctx := background()
	w.beforeUnit = func(n int) {
		if n == 4 {
			w.inUnit = func(context.Context) { ctx.Stop() }
		}
	}
	a := w.apply(t, fullPlan, ctx)
	a.want(t, event.Interrupted, true, "calm")
	if strings.Join(a.end.Left, " ") != "wipe rewrite resume" {
		t.Errorf("left: %v", a.end.Left)
	}
}

func testLockLost(t *testing.T, w *world) {
	w.beforeUnit = func(n int) {
		if n != 2 {
			return
		}
		if _, err := w.client.Delete(context.Background(), claim.LockKey(w.root)); err != nil {
			t.Error(err)
		}
	}
	a := w.apply(t, fullPlan, background())
	a.want(t, event.Failed, true, "calm")
	if event.ErrorOf(a.err).Code != "claim.lock-lost" {
		t.Errorf("got %v", a.err)
	}
}

func testLocked(t *testing.T, w *world) {
	place := claim.Place{Root: w.root, MetaRoot: w.root + "/meta"}
	other, err := claim.Take(t.Context(), w.client, place, claim.Owner{RunID: "other", Plan: "p", Who: "colleague", Host: "elsewhere"}, claim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, seen := w.runner(t, fullPlan)
	p, err := r.Preview(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Holder == nil || len(seen.of(event.LockHeld)) != 1 {
		t.Error("the preview does not say who holds the lock")
	}
	store, _ := journal.Open(w.state)
	j, err := store.Create(journal.Record{Steps: r.Steps()}, journal.Contents{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := r.Run(background(), p, j); fault.KindOf(err) != fault.Locked || !strings.Contains(err.Error(), "colleague on elsewhere") {
		t.Errorf("got %v", err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testUnfinished(t *testing.T, w *world) {
	ctx := background()
	w.inUnit = func(context.Context) { ctx.Stop() }
	w.apply(t, fullPlan, ctx).want(t, event.Interrupted, true, "calm")
	w.inUnit = nil

	r, seen := w.runner(t, "\n  - {id: calm, type: calm}\n  - {id: wipe, type: wipe}\n")
	_, err := r.Preview(t.Context(), false)
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "positionsReset") {
		t.Errorf("a plan that does not finish what was left: %v", err)
	}
	if len(seen.of(event.LeftFound)) != 1 {
		t.Error("what was left is not shown")
	}
	w.apply(t, "\n  - {id: calm, type: calm}\n", background()).want(t, event.Done, false, "calm")
	if marker, _ := w.marker(t); marker == nil {
		t.Error("a plan that does not finish what was left removed the marker")
	}
	w.apply(t, fullPlan, background()).want(t, event.Done, true, "calm wipe rewrite resume")
}

func testJournalBroken(t *testing.T, w *world) {
	r, _ := w.runner(t, fullPlan)
	p, err := r.Preview(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	store, _ := journal.Open(w.state)
	j, err := store.Create(journal.Record{Steps: r.Steps()}, journal.Contents{})
	if err != nil {
		t.Fatal(err)
	}
	j.Close() // every write fails from here on
	if err := r.Run(background(), p, j); err == nil || event.ErrorOf(err).Code != "journal.write" {
		t.Fatalf("got %v", err)
	}
	if w.get(t, "data/0") == "" {
		t.Error("something was deleted without a journal")
	}
}

func testUndo(t *testing.T, w *world) {
	a := w.apply(t, fullPlan, background())
	r, seen := w.undo(t, a.past)
	p, err := r.Preview(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := seen.of(event.StepPreviewed); len(got) != 1 || got[0].Lines[0].Value != "old" || got[0].Step.ID != "rewrite" {
		t.Fatalf("previewed: %+v", got)
	}
	w.carryOut(t, r, seen, p, background()).want(t, event.Done, true, "rewrite")
	if got := w.get(t, "position"); got != "old" {
		t.Errorf("the position is %q", got)
	}
	if marker, _ := w.marker(t); marker != nil {
		t.Error("the undo left a marker")
	}
}

func testUndoNothing(t *testing.T, w *world) {
	a := w.apply(t, "\n  - {id: calm, type: calm}\n  - {id: wipe, type: wipe}\n", background())
	_, err := NewUndo(Config{Types: w.types()}, a.past)
	if fault.KindOf(err) != fault.Refused || err == nil {
		t.Fatalf("got %v", err)
	}
}

func testUndoPart(t *testing.T, w *world) {
	first := w.apply(t, fullPlan, background())
	// What a run that was killed in its first destructive step leaves.
	w.put(t, "runbook/in-progress", `{"runId":"killed","plan":"test","owes":["walEmpty","positionsReset"]}`)
	r, seen := w.undo(t, first.past)
	p, err := r.Preview(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	w.carryOut(t, r, seen, p, background()).want(t, event.Done, true, "rewrite")
	marker, _ := w.marker(t)
	if marker == nil || strings.Join(marker.Owes, " ") != "walEmpty positionsReset" {
		t.Errorf("the marker is %+v", marker)
	}
}

func (w *world) undo(t *testing.T, past *journal.Past) (*Runner, *recorder) {
	t.Helper()
	like, seen := w.runner(t, fullPlan)
	r, err := NewUndo(Config{Types: w.types(), Instance: like.Instance, Console: seen}, past)
	if err != nil {
		t.Fatal(err)
	}
	return r, seen
}
