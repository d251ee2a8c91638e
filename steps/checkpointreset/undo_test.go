package checkpointreset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"runbook/internal/claim"
	"runbook/internal/fault"
	"runbook/internal/step"
)

// undo puts back what the run of env did, in a run of its own, and removes the
// marker, as the runner does after both.
func undo(t *testing.T, s *subject, env *step.Env) {
	t.Helper()
	own, r := s.wet(t)
	if _, err := runUndo(t.Context(), own, image(t, env)); err != nil {
		t.Fatal(err)
	}
	if err := own.Claim.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.end()
}

func testUndoPreviewsWithoutWriting(t *testing.T, w *world) {
	s := w.seed(t)
	_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
	dry, _ := s.dry()
	before := s.revision(t)
	p, err := previewUndo(t.Context(), dry, image(t, env))
	if err != nil || !p.Changes || len(p.Warnings) != 0 {
		t.Fatalf("%+v %v", p, err)
	}
	if after := s.revision(t); after != before {
		t.Errorf("revision %d, then %d", before, after)
	}
	undo(t, s, env)
	if p, err := previewUndo(t.Context(), dry, image(t, env)); err != nil || p.Changes {
		t.Errorf("there is something left to put back: %+v %v", p, err)
	}
	s.judge(t, "")
}

func testUndoLeavesWhatSomebodyElseChanged(t *testing.T, w *world) {
	target := "queryCoord-Collection-Target/461650000000000001"
	checkpoint := "datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_461650000000000001v0"
	for name, tt := range map[string]struct {
		rest   string
		change func(t *testing.T, s *subject, key string)
	}{
		"written since":              {checkpoint, func(t *testing.T, s *subject, key string) { s.put(t, key, "theirs") }},
		"removed and made anew":      {target, func(t *testing.T, s *subject, key string) { s.put(t, key, "theirs") }},
		"rewritten and then removed": {checkpoint, func(t *testing.T, s *subject, key string) { s.etcd.Delete(t.Context(), key) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.seed(t)
			_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
			key := s.meta(tt.rest)
			tt.change(t, s, key)
			own, _ := s.wet(t)
			_, err := runUndo(t.Context(), own, image(t, env))
			if f := wantFault(t, err, "undo.changed-since", fault.Failed); !strings.Contains(f.Msg, key) {
				t.Errorf("%s is not named in: %s", key, f.Msg)
			}
			resp, err := s.etcd.Get(t.Context(), key)
			if err != nil || len(resp.Kvs) > 0 && string(resp.Kvs[0].Value) != "theirs" {
				t.Errorf("%v %v", resp.Kvs, err)
			}
			p, err := previewUndo(t.Context(), own, image(t, env))
			if err != nil || p.Changes || len(p.Warnings) != 1 {
				t.Errorf("the others were not put back: %+v %v", p, err)
			}
		})
	}
}

func testUndoIsRefusedOnceMilvusHasRun(t *testing.T, w *world) {
	s := w.seed(t)
	_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
	// What a streamingnode writes after a while: a position in the new WAL, a later tick.
	key := s.meta("streamingnode-meta/wal/by-dev-rootcoord-dml_1/consume-checkpoint")
	moved := protowire.AppendVarint([]byte("\x0a\x0a\x0a\x06CAEQAQ\x10\x04\x10"), 461650000999999999)
	s.put(t, key, string(moved))
	own, _ := s.wet(t)
	before := s.revision(t)
	_, err := runUndo(t.Context(), own, image(t, env))
	if f := wantFault(t, err, "undo.milvus-ran", fault.Refused); f.Where != key {
		t.Errorf("names %s", f.Where)
	}
	if after := s.revision(t); after != before {
		t.Errorf("something was written: revision %d, then %d", before, after)
	}
}

func testUndoStoppedAnywhereIsFinishedByRunningAgain(t *testing.T, w *world) {
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprintf("after %d transactions", n), func(t *testing.T) {
			s := w.seed(t)
			_, env := s.reset(t, Inputs{TargetWal: "kafka"})
			own, r := s.wet(t)
			ctx, stop := context.WithCancel(t.Context())
			r.onBatch = func(done int) {
				if done == n {
					stop()
				}
			}
			if _, err := runUndo(ctx, own, image(t, env)); !errors.Is(err, context.Canceled) {
				t.Fatalf("not stopped: %v", err)
			}
			r.end()
			undo(t, s, env)
			s.judge(t, "")
		})
	}
}

func testUndoOfAHalfDoneResetPutsBackTheHalf(t *testing.T, w *world) {
	s := w.seed(t)
	env, r := s.wet(t)
	ctx, stop := context.WithCancel(t.Context())
	r.onBatch = func(n int) {
		if n == 3 {
			stop()
		}
	}
	if _, err := run(ctx, env, Inputs{TargetWal: "woodpecker"}); err == nil {
		t.Fatal("not stopped")
	}
	r.end()
	undo(t, s, env)
	s.judge(t, "")
	if marker, _, err := claim.Read(t.Context(), s.etcd, s.root); err != nil || marker != nil {
		t.Errorf("still marked: %+v %v", marker, err)
	}
}

func testUndoWarnsOfPositionsInAWALThatWasEmptied(t *testing.T, w *world) {
	s := w.seed(t, "--wal", "woodpecker")
	_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
	dry, _ := s.dry()
	p, err := previewUndo(t.Context(), dry, image(t, env))
	if err != nil || len(p.Warnings) != 1 {
		t.Errorf("%q %v", p.Warnings, err)
	}
}

func testABeforeImageOfAnotherInstanceIsRefused(t *testing.T, w *world) {
	s, other := w.seed(t), w.seed(t)
	_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
	own, _ := other.wet(t)
	_, err := runUndo(t.Context(), own, image(t, env))
	wantFault(t, err, "undo.other-instance", fault.Refused)
	other.judge(t, "")
}
