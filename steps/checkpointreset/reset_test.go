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
)

func testAResetMovesEveryPositionAndNothingElse(t *testing.T, w *world) {
	bystander := w.seed(t)
	for _, tt := range []struct{ from, to string }{
		{"pulsar", "woodpecker"}, {"pulsar", "kafka"}, {"pulsar", "rocksmq"}, {"pulsar", "pulsar"},
		{"woodpecker", "woodpecker"}, {"kafka", "pulsar"}, {"rocksmq", "kafka"}, {"rocksmq", "woodpecker"},
	} {
		t.Run("from "+tt.from+" to "+tt.to, func(t *testing.T) {
			s := w.seed(t, "--wal", tt.from, "--channelwatch", "--both-keys", "--replicate-config", "--importing", "--missing-checkpoint")
			in := Inputs{TargetWal: tt.to}
			dry, _ := s.dry()
			before := s.revision(t)
			p, err := preview(t.Context(), dry, in)
			if err != nil {
				t.Fatal(err)
			}
			if after := s.revision(t); after != before {
				t.Errorf("the preview wrote: revision %d, then %d", before, after)
			}
			out, env := s.reset(t, in)
			s.judge(t, tt.to)
			expected := p.Outputs.(Outputs)
			expected.Revision, expected.BeforeImage = out.Revision, out.BeforeImage
			if out != expected {
				t.Errorf("foreseen %+v\n    done %+v", expected, out)
			}
			if out.BeforeImage != image(t, env).Path || out.Revision <= before {
				t.Errorf("before-image %s, revision %d", out.BeforeImage, out.Revision)
			}
			if err := checkReset(t.Context(), dry, in); err != nil {
				t.Errorf("not proved: %v", err)
			}
			undo(t, s, env)
			s.judge(t, "")
		})
	}
	bystander.judge(t, "")
}

func testASecondResetWritesNothing(t *testing.T, w *world) {
	s := w.seed(t)
	s.reset(t, Inputs{TargetWal: "woodpecker"})
	env, _ := s.wet(t)
	before := s.revision(t)
	out, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
	if err != nil {
		t.Fatal(err)
	}
	if after := s.revision(t); after != before {
		t.Errorf("revision %d, then %d", before, after)
	}
	if images, _ := env.Journal.Past().Images(); len(images) != 0 || out.BeforeImage != "" {
		t.Errorf("a before-image of nothing: %v", images)
	}
	if env.Claim.Begun() {
		t.Error("the instance is marked as half done")
	}
	if p, err := preview(t.Context(), env, Inputs{TargetWal: "woodpecker"}); err != nil || p.Changes {
		t.Errorf("a dry run speaks of changes (%v)", err)
	}
}

// milvus-io/milvus 43181: from one WAL to another, and back.
func testGoingBackToTheFirstWALWorksLikeGoing(t *testing.T, w *world) {
	s := w.seed(t, "--wal", "pulsar")
	s.reset(t, Inputs{TargetWal: "kafka"})
	s.judge(t, "kafka")
	s.reset(t, Inputs{TargetWal: "pulsar"})
	s.judge(t, "pulsar")
}

func testStoppedAfterAnyTransactionItIsFinishedByRunningAgain(t *testing.T, w *world) {
	flags := []string{"--segments-per-collection", "120"} // several batches in one family
	s := w.seed(t, flags...)
	in := Inputs{TargetWal: "woodpecker"}
	env, r := s.wet(t)
	if _, err := run(t.Context(), env, in); err != nil {
		t.Fatal(err)
	}
	total := r.batches
	if total < 10 {
		t.Fatalf("only %d transactions", total)
	}
	for n := 1; n < total; n++ {
		t.Run(fmt.Sprintf("after %d of %d", n, total), func(t *testing.T) {
			s := w.seed(t, flags...)
			env, r := s.wet(t)
			ctx, stop := context.WithCancel(t.Context())
			r.onBatch = func(done int) {
				if done == n {
					stop()
				}
			}
			if _, err := run(ctx, env, in); !errors.Is(err, context.Canceled) {
				t.Fatalf("not stopped: %v", err)
			}
			r.end()
			dry, _ := s.dry()
			wantFault(t, checkReset(t.Context(), dry, in), "positions.not-reset", fault.Refused)
			s.reset(t, in)
			s.judge(t, "woodpecker")
		})
	}
}

func testAHalfDoneResetIsNamed(t *testing.T, w *world) {
	for _, tt := range []struct {
		name    string
		batches int
		want    string
	}{
		{"after the collections", 1, "an earlier reset may have stopped half-way"},
		{"after the channel checkpoints", 3, "channel checkpoints name woodpecker, consume checkpoints name pulsar"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := w.seed(t)
			env, r := s.wet(t)
			ctx, stop := context.WithCancel(t.Context())
			r.onBatch = func(done int) {
				if done == tt.batches {
					stop()
				}
			}
			if _, err := run(ctx, env, Inputs{TargetWal: "woodpecker"}); err == nil {
				t.Fatal("not stopped")
			}
			r.end()
			dry, _ := s.dry()
			p, err := preview(t.Context(), dry, Inputs{TargetWal: "woodpecker"})
			if err != nil || !strings.Contains(strings.Join(p.Warnings, "\n"), tt.want) {
				t.Errorf("%v, warnings: %q", err, p.Warnings)
			}
		})
	}
}

func testAMilvusThatStartsStopsTheNextTransaction(t *testing.T, w *world) {
	s := w.seed(t)
	env, r := s.wet(t)
	session := s.meta("session/proxy-6")
	r.onBatch = func(n int) {
		if n == 2 {
			s.put(t, session, `{"ServerID":6,"ServerName":"proxy","Address":"10.0.0.7:19530"}`)
		}
	}
	_, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
	if f := wantFault(t, err, "claim.session", fault.Failed); !strings.Contains(f.Msg, "10.0.0.7:19530") {
		t.Errorf("who started is not named: %s", f.Msg)
	}
	if r.batches != 2 {
		t.Errorf("%d transactions went through", r.batches)
	}
	marker, _, err := claim.Read(t.Context(), s.etcd, s.root)
	if err != nil || marker == nil {
		t.Errorf("the instance is not marked as half done (%v)", err)
	}
	r.end()
	if _, err := s.etcd.Delete(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	s.reset(t, Inputs{TargetWal: "woodpecker"})
	if _, err := s.etcd.Delete(t.Context(), claim.MarkerKey(s.root)); err != nil {
		t.Fatal(err)
	}
	s.judge(t, "woodpecker")
}

func testAKeyThatChangesUnderTheRunIsNamed(t *testing.T, w *world) {
	s := w.seed(t)
	env, r := s.wet(t)
	key := s.meta("datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_461650000000000001v0")
	r.onBegin = map[string]func(){"writing positions": func() { s.put(t, key, s.get(t, key)) }}
	_, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
	if f := wantFault(t, err, "positions.changed", fault.Failed); f.Where != key {
		t.Errorf("names %s", f.Where)
	}
}

func testAReadingStartsOverWhenEtcdCompactsIt(t *testing.T, w *world) {
	s := w.seed(t)
	for _, tt := range []struct {
		times int
		code  string
	}{{1, ""}, {surveyAttempts, "positions.compacted"}} {
		env, r := s.wet(t)
		left := tt.times
		r.onBegin = map[string]func(){"reading stored positions": func() {
			if left--; left < 0 {
				return
			}
			s.put(t, "elsewhere", "")
			if _, err := s.etcd.Compact(t.Context(), s.revision(t)); err != nil {
				t.Fatal(err)
			}
		}}
		_, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
		if tt.code != "" {
			wantFault(t, err, tt.code, fault.Failed)
			continue
		}
		if err != nil || !r.heard("reading again") {
			t.Errorf("%v, said %q", err, r.said)
		}
		s.judge(t, "woodpecker")
		r.end()
	}
}

func testARepairOfOneChannelLeavesTheOthers(t *testing.T, w *world) {
	s := w.seed(t)
	in := Inputs{TargetWal: "woodpecker", Pchannels: []string{"by-dev-rootcoord-dml_1"}}
	neighbour := s.meta("streamingnode-meta/wal/by-dev-rootcoord-dml_10/consume-checkpoint")
	other := s.meta("datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_461650000000000001v0")
	mine := s.meta("datacoord-meta/channel-cp/by-dev-rootcoord-dml_1_461650000000000001v1")
	before := map[string]string{neighbour: s.get(t, neighbour), other: s.get(t, other), s.root + "/config/mqtype": "pulsar"}
	was := s.get(t, mine)
	out, env := s.reset(t, in)
	for key, value := range before {
		if s.get(t, key) != value {
			t.Errorf("%s changed", key)
		}
	}
	if s.get(t, mine) == was {
		t.Errorf("%s did not change", mine)
	}
	if out.ConsumeCheckpoints.Rewritten != 1 || out.ChannelCheckpoints.Rewritten != 2 || out.QueryTargets != 2 || out.SegmentAssignments != 1 {
		t.Errorf("%+v", out)
	}
	dry, _ := s.dry()
	wantFault(t, checkReset(t.Context(), dry, in), "positions.split", fault.Refused)
	undo(t, s, env)
	s.judge(t, "")
}

func testALargeValueGoesAlone(t *testing.T, w *world) {
	s := w.seed(t)
	const segments = 4
	for n := range segments {
		s.put(t, s.meta(fmt.Sprintf("datacoord-meta/s/7/7/%d", n+1)), segmentOf(n+1, 700<<10))
	}
	_, env := s.reset(t, Inputs{TargetWal: "woodpecker"})
	for n := range segments {
		got := s.get(t, s.meta(fmt.Sprintf("datacoord-meta/s/7/7/%d", n+1)))
		if !strings.Contains(got, "\x4a\x02\x28\x04") {
			t.Errorf("segment %d: %x", n+1, got[:32])
		}
	}
	undo(t, s, env)
}

func testAValueBeyondWhatEtcdTakesIsNamed(t *testing.T, w *world) {
	s := w.seed(t)
	const limit = 1536 << 10 // etcd's, for a whole request
	key := s.meta("datacoord-meta/s/7/7/1")
	s.put(t, key, segmentOf(1, limit-200))
	env, _ := s.wet(t)
	_, err := run(t.Context(), env, Inputs{TargetWal: "pulsar"})
	if f := wantFault(t, err, "positions.too-large", fault.Failed); !strings.HasPrefix(f.Where, key) {
		t.Errorf("names %s", f.Where)
	}
}

// segmentOf is a segment with an empty start position and so many bytes that are
// not known here.
func segmentOf(id, size int) string {
	const unknown = 99
	value := []byte{0x08, byte(id), 0x10, 7, 0x18, 7, 0x30, 4, 0x4a, 0}
	value = protowire.AppendTag(value, unknown, protowire.BytesType)
	return string(protowire.AppendBytes(value, make([]byte, size)))
}
