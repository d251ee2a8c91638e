package milvus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"runbook/internal/labtest"
	"runbook/internal/milvus"
)

const meta = "by-dev/meta"

func TestAgainstARealEtcd(t *testing.T) {
	lab := labtest.Start(t)
	etcd := lab.EtcdClient(t)
	lab.Run(t, "seed", "--only", "--milvus", "--wal", "pulsar", "--missing-checkpoint")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *clientv3.Client)
	}{
		{"what the positions of an instance name", testStoredPositions},
		{"the channels and the pin of an instance", testChannelsAndPin},
		{"a view reads many pages at one revision", testViewIsOneRevision},
		{"a view reads pages that do not fit into one reply", testViewHalvesItsPages},
		{"a view tells that its revision was compacted", testViewTellsOfCompaction},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, etcd) })
	}
}

func testStoredPositions(t *testing.T, etcd *clientv3.Client) {
	// Four channel checkpoints without the marker of a dropped channel; of three
	// consume checkpoints one was left out.
	got, err := milvus.StoredPositions(t.Context(), etcd, meta)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(milvus.Stored{WALs: milvus.WALCounts{milvus.Pulsar: 6}}, got); diff != "" {
		t.Error(diff)
	}
	fresh := meta + "/datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_9v0"
	put(t, etcd, fresh, "\x0a\x01v\x28\x04")
	got, err = milvus.StoredPositions(t.Context(), etcd, meta)
	if err != nil || got.Fresh != 1 || got.WALs.String() != "pulsar (6) and woodpecker (1)" {
		t.Errorf("%+v %v", got, err)
	}
	put(t, etcd, fresh, "")
	if got, err := milvus.StoredPositions(t.Context(), etcd, meta); !errors.Is(err, milvus.ErrEmpty) || !strings.Contains(err.Error(), fresh) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := etcd.Delete(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
}

func testChannelsAndPin(t *testing.T, etcd *clientv3.Client) {
	channels, err := milvus.Pchannels(t.Context(), etcd, meta)
	if diff := cmp.Diff([]string{"by-dev-rootcoord-dml_0", "by-dev-rootcoord-dml_1"}, channels); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for root, want := range map[string]string{"by-dev": "pulsar", "by": ""} {
		if pin, err := milvus.ReadPin(t.Context(), etcd, root); pin != want || err != nil {
			t.Errorf("%s: %q %v", root, pin, err)
		}
	}
	put(t, etcd, "by-dev/config/mq.type", "kafka")
	put(t, etcd, "by-dev/config/metastore/type", "tikv")
	view := newView(t, etcd)
	overrides, err := milvus.ReadOverrides(t.Context(), view, "by-dev")
	if err != nil {
		t.Fatal(err)
	}
	aliases := overrides.PinAliases("by-dev")
	if overrides.Pin("by-dev").Value != "pulsar" || len(aliases) != 1 || aliases[0].Value != "kafka" || overrides.Metastore() != "tikv" {
		t.Errorf("%+v", overrides)
	}
}

func testViewIsOneRevision(t *testing.T, etcd *clientv3.Client) {
	const keys = 2500
	for n := range keys {
		put(t, etcd, fmt.Sprintf("pages/%05d", n), "old")
	}
	put(t, etcd, "pages0", "a neighbour")
	view := newView(t, etcd)
	seen := 0
	for kv, err := range view.Entries(t.Context(), "pages/") {
		if err != nil {
			t.Fatal(err)
		}
		if string(kv.Key) != fmt.Sprintf("pages/%05d", seen) || string(kv.Value) != "old" {
			t.Fatalf("key %d is %s: %s", seen, kv.Key, kv.Value)
		}
		if seen == 10 { // behind and before the place of the reading
			put(t, etcd, "pages/00000", "new")
			put(t, etcd, "pages/02400", "new")
			put(t, etcd, "pages/02400x", "new")
		}
		seen++
	}
	if seen != keys {
		t.Errorf("%d keys", seen)
	}
	if n, err := view.Count(t.Context(), "pages/"); n != keys || err != nil {
		t.Errorf("counted %d %v", n, err)
	}
}

func testViewHalvesItsPages(t *testing.T, lab *clientv3.Client) {
	narrow, err := clientv3.New(clientv3.Config{
		Endpoints: lab.Endpoints(), DialTimeout: 5 * time.Second, Logger: zap.NewNop(), MaxCallSendMsgSize: 1 << 20, MaxCallRecvMsgSize: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer narrow.Close()
	const keys = 40
	for n := range keys {
		put(t, lab, fmt.Sprintf("large/%02d", n), strings.Repeat("x", 200<<10))
	}
	seen := 0
	for kv, err := range newView(t, narrow).Entries(t.Context(), "large/") {
		if err != nil {
			t.Fatal(err)
		}
		if len(kv.Value) != 200<<10 {
			t.Fatalf("%d bytes", len(kv.Value))
		}
		seen++
	}
	if seen != keys {
		t.Errorf("%d keys", seen)
	}
}

func testViewTellsOfCompaction(t *testing.T, etcd *clientv3.Client) {
	view := newView(t, etcd)
	put(t, etcd, "later", "")
	if _, err := etcd.Compact(t.Context(), view.Revision+1); err != nil {
		t.Fatal(err)
	}
	for _, err := range view.Entries(t.Context(), "pages/") {
		if !errors.Is(err, milvus.ErrCompacted) {
			t.Fatalf("%v", err)
		}
		return
	}
	t.Error("it saw nothing, and said nothing")
}

func newView(t *testing.T, etcd *clientv3.Client) milvus.View {
	t.Helper()
	view, err := milvus.NewView(t.Context(), etcd, meta)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func put(t *testing.T, etcd *clientv3.Client, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := etcd.Put(ctx, key, value); err != nil {
		t.Fatal(err)
	}
}
