package claim

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
	"golang.org/x/sync/errgroup"

	"runbook/internal/fault"
	"runbook/internal/labtest"
)

// Each test has a root of its own in one lab.
func TestClaim(t *testing.T) {
	lab := labtest.Start(t)
	client := lab.EtcdClient(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b *bench)
	}{
		{"a second run is locked out and told who holds the instance", testSecondRun},
		{"of many runs at once exactly one gets the lock", testManyRuns},
		{"the lock of a dead process of this machine is taken over at once", testDeadHolder},
		{"the lock of a process elsewhere is respected until its lease ends", testForeignHolder},
		{"the marker is written once by many concurrent commits", testConcurrentBegin},
		{"a commit fails while a milvus session exists, and writes nothing", testSession},
		{"the permanent session keys are no session", testPermanentKeys},
		{"a key that changed is reported as ErrChanged", testChanged},
		{"a commit after the lock was removed by hand says so", testLockRemoved},
		{"a commit after another run took over names that run", testTakenOver},
		{"a marker names the runs that it continues", testContinues},
		{"a stage is recorded in lock and marker, also while milvus runs", testStage},
		{"finishing without a marker is no error", testFinishNothing},
		{"a marker that cannot be read is a marker", testBrokenMarker},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newBench(t, client)) })
	}
}

// Leases are counted in whole seconds, so these tests take some.
func TestClaimWhileEtcdIsAway(t *testing.T) {
	lab := labtest.Start(t)
	b := newBench(t, lab.EtcdClient(t))

	t.Run("a short hiccup is outlasted", func(t *testing.T) {
		c, err := Take(t.Context(), b.client, b.place, b.owner("run-1"), Options{Lost: func(err error) { t.Errorf("lost: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		lab.Run(t, "stop-etcd")
		entered := make(chan error, 1)
		go func() { entered <- c.Enter(context.Background(), Stage{Step: "wal"}) }()
		lab.Run(t, "start-etcd")
		if err := <-entered; err != nil {
			t.Fatal(err)
		}
		if _, err := c.Commit(t.Context(), nil, clientv3.OpPut(b.place.Root+"/data", "x")); err != nil {
			t.Fatal(err)
		}
		if err := c.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a long absence loses the lock loudly", func(t *testing.T) {
		lost := make(chan error, 1)
		c, err := Take(t.Context(), b.client, b.place, b.owner("run-2"), Options{TTL: 2 * time.Second, Lost: func(err error) { lost <- err }})
		if err != nil {
			t.Fatal(err)
		}
		lab.Run(t, "stop-etcd")
		defer lab.Run(t, "start-etcd")
		select {
		case err := <-lost:
			wantCode(t, err, "claim.lock-lost")
		case <-time.After(30 * time.Second):
			t.Fatal("nobody was told that the lock is lost")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Commit(ctx, nil, clientv3.OpPut(b.place.Root+"/data", "y")); err == nil {
			t.Error("a commit succeeded without etcd")
		}
	})
}

// bench is one instance, and who plays a run on it.
type bench struct {
	client *clientv3.Client
	place  Place
}

func newBench(t *testing.T, client *clientv3.Client) *bench {
	root := fmt.Sprintf("root-%x", time.Now().UnixNano())
	return &bench{client: client, place: Place{Root: root, MetaRoot: root + "/meta"}}
}

func (b *bench) owner(id string) Owner {
	return Owner{RunID: id, Plan: "cold-switch", Who: "operator", Host: "host-a", PID: os.Getpid(), Version: "test", Since: time.Now()}
}

func (b *bench) take(t *testing.T, id string) *Claim {
	t.Helper()
	c, err := Take(t.Context(), b.client, b.place, b.owner(id), Options{Lost: func(err error) { t.Errorf("lost: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Release(context.Background()) })
	return c
}

func (b *bench) put(t *testing.T, key, value string) {
	t.Helper()
	if _, err := b.client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) get(t *testing.T, key string) string {
	t.Helper()
	resp, err := b.client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func (b *bench) read(t *testing.T) (*Marker, *Holder) {
	t.Helper()
	marker, holder, err := Read(t.Context(), b.client, b.place.Root)
	if err != nil {
		t.Fatal(err)
	}
	return marker, holder
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		t.Fatalf("want an error with code %s, got %v", code, err)
	}
}

func testSecondRun(t *testing.T, b *bench) {
	first := b.take(t, "run-1")
	if err := first.Enter(t.Context(), Stage{Step: "wal"}); err != nil {
		t.Fatal(err)
	}
	_, err := Take(t.Context(), b.client, b.place, b.owner("run-2"), Options{})
	if fault.KindOf(err) != fault.Locked {
		t.Fatalf("want an error of kind Locked, got %v", err)
	}
	for _, word := range []string{"run-1", "operator", "host-a", "in step wal", "since"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %q", err, word)
		}
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.take(t, "run-3")
}

func testManyRuns(t *testing.T, b *bench) {
	var mu sync.Mutex
	var won []*Claim
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 10 {
		group.Go(func() error {
			c, err := Take(ctx, b.client, b.place, b.owner(fmt.Sprintf("run-%d", i)), Options{})
			if fault.KindOf(err) == fault.Locked && err != nil {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			won = append(won, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(won) != 1 {
		t.Fatalf("%d runs hold the lock", len(won))
	}
	if err := won[0].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// holdAs writes a lock as another process would have left it.
func (b *bench) holdAs(t *testing.T, p process, ttl int64) {
	t.Helper()
	lease, err := b.client.Grant(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	value := Holder{Owner: b.owner("run-0"), Step: "wal", Process: p}.encode()
	if _, err := b.client.Put(t.Context(), b.place.lockKey(), value, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
}

func testDeadHolder(t *testing.T, b *bench) {
	dead := thisProcess()
	if dead.Start == "" {
		t.Skip("processes cannot be told apart on this system")
	}
	dead.Start = "1" // the pid is in use, but by a younger process
	b.holdAs(t, dead, 600)
	b.take(t, "run-1")
}

func testForeignHolder(t *testing.T, b *bench) {
	b.holdAs(t, process{}, 2)
	_, err := Take(t.Context(), b.client, b.place, b.owner("run-1"), Options{})
	if fault.KindOf(err) != fault.Locked {
		t.Fatalf("want an error of kind Locked, got %v", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, holder := b.read(t); holder == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the lease of 2s did not end")
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.take(t, "run-2")
}

func testConcurrentBegin(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 20 {
		group.Go(func() error {
			_, err := c.Commit(ctx, nil, clientv3.OpPut(fmt.Sprintf("%s/data/%d", b.place.Root, i), "x"))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	resp, err := b.client.Get(t.Context(), b.place.markerKey())
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) != 1 || resp.Kvs[0].Version != 1 {
		t.Fatalf("the marker was not written exactly once: %v", resp.Kvs)
	}
}

func testSession(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	b.put(t, b.place.MetaRoot+"/session/querynode-7", `{"ServerName":"querynode","ServerID":7,"Address":"10.0.0.7:21123"}`)
	_, err := c.Commit(t.Context(), nil, clientv3.OpPut(b.place.Root+"/data", "x"))
	wantCode(t, err, "claim.session")
	if !strings.Contains(err.Error(), "querynode 7 at 10.0.0.7:21123") {
		t.Errorf("%q does not say who runs", err)
	}
	if got := b.get(t, b.place.Root+"/data"); got != "" {
		t.Errorf("written all the same: %q", got)
	}
	if marker, _ := b.read(t); marker != nil || c.Begun() {
		t.Error("marked as half done although nothing could be changed")
	}
}

func testPermanentKeys(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	b.put(t, b.place.MetaRoot+"/session/id", "12")
	b.put(t, b.place.MetaRoot+"/session/version", "2.6.0")
	b.put(t, b.place.MetaRoot+"/session-other", "x")
	if _, err := c.Commit(t.Context(), nil, clientv3.OpPut(b.place.Root+"/data", "x")); err != nil {
		t.Fatal(err)
	}
	if marker, _ := b.read(t); marker == nil || !c.Begun() {
		t.Error("not marked as half done")
	}
}

func testChanged(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	key := b.place.Root + "/data"
	b.put(t, key, "theirs")
	_, err := c.Commit(t.Context(), []clientv3.Cmp{clientv3.Compare(clientv3.Value(key), "=", "ours")}, clientv3.OpDelete(key))
	if !errors.Is(err, ErrChanged) {
		t.Fatalf("want ErrChanged, got %v", err)
	}
	wantCode(t, err, "claim.changed")
	if got := b.get(t, key); got != "theirs" {
		t.Errorf("the key now holds %q", got)
	}
}

func testLockRemoved(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	if _, err := b.client.Delete(t.Context(), b.place.lockKey()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Commit(t.Context(), nil, clientv3.OpPut(b.place.Root+"/data", "x"))
	wantCode(t, err, "claim.lock-lost")
	wantCode(t, c.Enter(t.Context(), Stage{Step: "next"}), "claim.lock-lost")
	wantCode(t, c.Finish(t.Context()), "claim.lock-lost")
}

func testTakenOver(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	if _, err := b.client.Delete(t.Context(), b.place.lockKey()); err != nil {
		t.Fatal(err)
	}
	b.take(t, "run-2")
	_, err := c.Commit(t.Context(), nil, clientv3.OpPut(b.place.Root+"/data", "x"))
	wantCode(t, err, "claim.lock-lost")
	if !strings.Contains(err.Error(), "run-2") {
		t.Errorf("%q does not name the run that took over", err)
	}
}

func testContinues(t *testing.T, b *bench) {
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		c := b.take(t, id)
		if err := c.Enter(t.Context(), Stage{Step: "wal", Doing: "empty it", Owes: []string{"walEmpty"}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	marker, holder := b.read(t)
	if holder != nil {
		t.Errorf("the lock outlived its release: %v", holder)
	}
	if got := strings.Join(marker.Continues, " "); got != "run-1 run-2" || marker.RunID != "run-3" {
		t.Errorf("marker of %s continues %q", marker.RunID, got)
	}
	text := strings.Join(marker.Lines(), "\n")
	for _, word := range []string{"run-3", "operator", "host-a", "step wal: empty it", "walEmpty", "run-1, run-2"} {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not name %q", text, word)
		}
	}
}

func testStage(t *testing.T, b *bench) {
	c := b.take(t, "run-1")
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.put(t, b.place.MetaRoot+"/session/mixcoord", "{}")
	if err := c.Enter(t.Context(), Stage{Step: "positions", Doing: "rewrite", Owes: []string{"positionsReset"}}); err != nil {
		t.Fatal(err)
	}
	marker, holder := b.read(t)
	if marker.Step != "positions" || holder.Step != "positions" || holder.TTL <= 0 {
		t.Errorf("marker %+v, holder %+v", marker, holder)
	}
	if err := c.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if marker, _ := b.read(t); marker != nil {
		t.Error("the marker outlived Finish")
	}
	if !c.Begun() {
		t.Error("a run that changed something says that it did not")
	}
}

func testFinishNothing(t *testing.T, b *bench) {
	if err := b.take(t, "run-1").Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testBrokenMarker(t *testing.T, b *bench) {
	b.put(t, b.place.markerKey(), "not json")
	marker, _ := b.read(t)
	if marker == nil || !strings.Contains(strings.Join(marker.Lines(), " "), "not json") {
		t.Fatalf("got %+v", marker)
	}
}
