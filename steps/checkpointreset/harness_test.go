package checkpointreset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/claim"
	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/journal"
	"runbook/internal/labtest"
	"runbook/internal/step"
)

func TestAgainstARealEtcd(t *testing.T) {
	lab := labtest.Start(t)
	w := &world{lab: lab, etcd: lab.EtcdClient(t)}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"each gate refuses and nothing is written", testEachGateRefusesAndNothingIsWritten},
		{"everything in the way is named at once", testEverythingInTheWayIsNamedAtOnce},
		{"another root is not this milvus", testAnotherRootIsNotThisMilvus},
		{"a gate that the operator opens is named all the same", testAGateThatTheOperatorOpensIsNamedAllTheSame},
		{"the pin is set where there is one", testThePinIsSetWhereThereIsOne},
		{"a reset moves every position and nothing else", testAResetMovesEveryPositionAndNothingElse},
		{"a second reset writes nothing", testASecondResetWritesNothing},
		{"going back to the first WAL works like going", testGoingBackToTheFirstWALWorksLikeGoing},
		{"stopped after any transaction it is finished by running again", testStoppedAfterAnyTransactionItIsFinishedByRunningAgain},
		{"a half done reset is named", testAHalfDoneResetIsNamed},
		{"a milvus that starts stops the next transaction", testAMilvusThatStartsStopsTheNextTransaction},
		{"a key that changes under the run is named", testAKeyThatChangesUnderTheRunIsNamed},
		{"a reading starts over when etcd compacts it", testAReadingStartsOverWhenEtcdCompactsIt},
		{"a lost transaction is told from a lost answer", testALostTransactionIsToldFromALostAnswer},
		{"a short outage of etcd is waited for", testAShortOutageOfEtcdIsWaitedFor},
		{"a repair of one channel leaves the others", testARepairOfOneChannelLeavesTheOthers},
		{"a large value goes alone", testALargeValueGoesAlone},
		{"a value beyond what etcd takes is named", testAValueBeyondWhatEtcdTakesIsNamed},
		{"undo previews without writing", testUndoPreviewsWithoutWriting},
		{"undo leaves what somebody else changed", testUndoLeavesWhatSomebodyElseChanged},
		{"undo is refused once milvus has run", testUndoIsRefusedOnceMilvusHasRun},
		{"undo stopped anywhere is finished by running again", testUndoStoppedAnywhereIsFinishedByRunningAgain},
		{"undo of a half done reset puts back the half", testUndoOfAHalfDoneResetPutsBackTheHalf},
		{"undo warns of positions in a WAL that was emptied", testUndoWarnsOfPositionsInAWALThatWasEmptied},
		{"a before image of another instance is refused", testABeforeImageOfAnotherInstanceIsRefused},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

// world is one lab, with an instance for each test under a root of its own. What
// became of one is judged by the lab, with Milvus's own messages.
type world struct {
	lab   *labtest.Lab
	etcd  *clientv3.Client
	roots int
}

// seed makes a stopped Milvus and returns it as a step sees it.
func (w *world) seed(t *testing.T, flags ...string) *subject {
	t.Helper()
	w.roots++
	s := &subject{world: w, root: fmt.Sprintf("org%d/by-dev", w.roots), flags: flags}
	w.lab.Run(t, append([]string{"seed", "--only", "--milvus", "--root", s.root}, flags...)...)
	s.instance = instance.New(instance.Settings{Etcd: instance.Etcd{Endpoints: w.lab.Etcd.Endpoints, RootPath: s.root, MetaSubPath: "meta"}}, nil)
	t.Cleanup(func() { s.instance.Close() })
	return s
}

// subject is one instance.
type subject struct {
	*world
	root     string
	flags    []string
	instance *instance.Instance
}

func (s *subject) meta(rest string) string { return s.root + "/meta/" + rest }

// judge fails the test unless every key is as a reset to target must leave it; ""
// means as it was seeded.
func (s *subject) judge(t *testing.T, target string) {
	t.Helper()
	args := append([]string{"verify-positions", "--root", s.root}, s.flags...)
	if target != "" {
		args = append(args, "--target", target)
	}
	s.lab.Run(t, args...)
}

// dry is the environment of a preview: it cannot write.
func (s *subject) dry() (*step.Env, *recorder) {
	r := &recorder{}
	return &step.Env{StepID: "positions", Instance: s.instance, Report: r, Now: time.Now}, r
}

// wet is the environment of a run of its own, which ends with the test or before.
func (s *subject) wet(t *testing.T) (*step.Env, *recorder) {
	t.Helper()
	env, r := s.dry()
	store, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env.Journal, err = store.Create(journal.Record{Kind: journal.Apply, Started: time.Now()}, journal.Contents{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { env.Journal.Close() })
	place := claim.Place{Root: s.root, MetaRoot: s.instance.Settings.MetaRoot()}
	env.Claim, err = claim.Take(t.Context(), s.etcd, place, claim.Owner{RunID: env.Journal.Record.ID, PID: os.Getpid()}, claim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { env.Claim.Release(context.WithoutCancel(t.Context())) })
	t.Cleanup(release)
	r.end = release
	return env, r
}

// reset runs the step and demands success.
func (s *subject) reset(t *testing.T, in Inputs) (Outputs, *step.Env) {
	t.Helper()
	env, r := s.wet(t)
	out, err := run(t.Context(), env, in)
	if err != nil {
		t.Fatal(err)
	}
	r.end()
	return out, env
}

func (s *subject) revision(t *testing.T) int64 {
	t.Helper()
	resp, err := s.etcd.Get(t.Context(), "x", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

func (s *subject) put(t *testing.T, key, value string) {
	t.Helper()
	if _, err := s.etcd.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func (s *subject) get(t *testing.T, key string) string {
	t.Helper()
	resp, err := s.etcd.Get(t.Context(), key)
	if err != nil || len(resp.Kvs) == 0 {
		t.Fatalf("%s: %v", key, err)
	}
	return string(resp.Kvs[0].Value)
}

// image is the before-image that a run left.
func image(t *testing.T, env *step.Env) *journal.Image {
	t.Helper()
	images, err := env.Journal.Past().Images()
	if err != nil || len(images) != 1 {
		t.Fatalf("%d before-images: %v", len(images), err)
	}
	return images[0]
}

// recorder is a Reporter that remembers, and that can act between two batches.
type recorder struct {
	mu       sync.Mutex
	said     []string
	end      func()
	onBegin  map[string]func() // when a piece of work begins, by its name
	onBatch  func(n int)       // after batch n, from 1, of any writing
	batches  int
	counting bool
}

func (r *recorder) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Note(format string, args ...any) { r.say(format, args...) }
func (r *recorder) Warn(format string, args ...any) { r.say(format, args...) }

func (r *recorder) Progress(what string, total int64) step.Progress {
	if act := r.onBegin[what]; act != nil {
		act()
	}
	r.counting = what == "writing positions" || what == "putting positions back"
	return r
}

func (r *recorder) Add(int64) {
	if !r.counting {
		return
	}
	r.batches++
	if r.onBatch != nil {
		r.onBatch(r.batches)
	}
}

func (r *recorder) Done() {}

func (r *recorder) heard(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.said, "\n"), text)
}

// wantFault demands an error with this code and with something to do.
func wantFault(t *testing.T, err error, code string, kind fault.Kind) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || f.Kind != kind {
		t.Fatalf("want %s, got %v", code, err)
	}
	if len(f.Hints) == 0 {
		t.Errorf("%s says nothing about what to do", code)
	}
	return f
}
