package seed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/zilliztech/woodpecker/proto"
	clientv3 "go.etcd.io/etcd/client/v3"
	protobuf "google.golang.org/protobuf/proto"

	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/milvus"
	"runbook/e2e/lab/internal/milvusfixture"
	"runbook/e2e/lab/internal/state"
)

// park writes extra logs and deletes them with the real client, which leaves
// their metadata under logs-deleted and their objects where they were.
func (s *Seeder) park(ctx context.Context, count int) error {
	var ids []int64
	err := s.withClient(ctx, func(c *Client) error {
		taken, err := c.GetAllLogs(ctx)
		if err != nil {
			return err
		}
		var names []string
		for n := 0; len(names) < count; n++ {
			if name := milvus.PChannel(s.target.Root, n); !slices.Contains(taken, name) {
				names = append(names, name)
			}
		}
		if err := s.writeLogs(ctx, c, names, WAL{Segments: 1, Bytes: 64, Compact: true}); err != nil {
			return err
		}
		for _, name := range names {
			h, err := c.OpenLog(ctx, name)
			if err != nil {
				return err
			}
			ids = append(ids, h.GetId())
			if err := errors.Join(h.Close(ctx), c.DeleteLog(ctx, name)); err != nil {
				return fmt.Errorf("delete log %s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil || s.target.StorageType != StorageService {
		return err
	}
	return s.awaitReclaimed(ctx, ids)
}

// awaitReclaimed waits until the nodes have removed the logs and their markers,
// so that nothing moves any more when seed returns.
func (s *Seeder) awaitReclaimed(ctx context.Context, ids []int64) error {
	limit := s.lab.Settings.ReclaimGrace + s.lab.Settings.ReclaimInterval + 30*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, node := range s.lab.Nodes {
		for _, id := range ids {
			dir := filepath.Join(node.DataDir, s.clientOwner(), strconv.FormatInt(id, 10))
			marker := filepath.Join(node.DataDir, layout.MarkersDir, s.clientOwner(), strconv.FormatInt(id, 10)+".json")
			for exists(dir) || exists(marker) {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return fmt.Errorf("node %d has not reclaimed log %d: %w", node.N, id, ctx.Err())
				}
			}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// orphanObjects writes object directories of ids that no metadata names, as a
// truncated segment's lost objects are. The ids are taken from the counter.
func (s *Seeder) orphanObjects(ctx context.Context, count int) error {
	counter, err := s.counter(ctx)
	if err != nil {
		return err
	}
	for n := range int64(count) {
		dir := s.target.WALRoot() + "/" + strconv.FormatInt(counter+n+1, 10) + "/0/"
		for _, name := range []string{"m_0.blk", "footer.blk"} {
			if err := s.put(ctx, dir+name, "orphan "+name); err != nil {
				return err
			}
		}
	}
	return s.setCounter(ctx, counter+int64(count))
}

// orphanNodeDirs puts log directories on node disks that nothing names.
func (s *Seeder) orphanNodeDirs(ids []int64, nodes []int) error {
	for _, n := range nodes {
		if n < 1 || n > state.NodeCount {
			return fmt.Errorf("there is no node %d: nodes are 1 to %d", n, state.NodeCount)
		}
		for _, id := range ids {
			dir := filepath.Join(s.lab.Nodes[n-1].DataDir, s.target.NodeOwner(), strconv.FormatInt(id, 10), "0")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "data.log"), []byte("orphan data of log "+strconv.FormatInt(id, 10)), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreign puts objects under the WAL's root that are not woodpecker's, some
// inside a log's directory, and placeholders such as file browsers leave.
func (s *Seeder) foreign(ctx context.Context) error {
	root := s.target.WALRoot() + "/"
	for key, content := range map[string]string{
		"README.txt":            "put here by somebody",
		"backup/1/0/footer.blk": "a copy that is not at its place",
		"abc/0/1.blk":           "not a log id",
		"1/notes.txt":           "inside a log's directory",
		"1/0/export.parquet":    "inside a segment's directory",
		"2/0/m_0.blk.bak":       "nearly a block",
		"7/":                    "",
		"7/0/":                  "",
		"not-a-log/":            "",
	} {
		if err := s.put(ctx, root+key, content); err != nil {
			return err
		}
	}
	return nil
}

// stripQuorum takes the quorum out of the segment metadata of the first logs,
// which then looks as it did before quorums were recorded.
func (s *Seeder) stripQuorum(ctx context.Context, logs int) error {
	keys := s.target.Keys()
	var ops []clientv3.Op
	for n := range logs {
		prefix := keys.BuildLogKey(milvus.PChannel(s.target.Root, n)) + "/segments/"
		resp, err := s.etcd.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			var segment proto.SegmentMetadata
			if err := protobuf.Unmarshal(kv.Value, &segment); err != nil {
				return fmt.Errorf("%s: %w", kv.Key, err)
			}
			segment.Quorum = nil
			value, err := protobuf.Marshal(&segment)
			if err != nil {
				return err
			}
			ops = append(ops, clientv3.OpPut(string(kv.Key), string(value)))
		}
	}
	if len(ops) == 0 {
		return fmt.Errorf("no segments at %s", keys.LogsPrefix())
	}
	return s.commit(ctx, ops)
}

func (s *Seeder) counter(ctx context.Context) (int64, error) {
	key := s.target.Keys().LogIdGeneratorKey()
	resp, err := s.etcd.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	if len(resp.Kvs) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(resp.Kvs[0].Value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return n, nil
}

func (s *Seeder) setCounter(ctx context.Context, n int64) error {
	_, err := s.etcd.Put(ctx, s.target.Keys().LogIdGeneratorKey(), strconv.FormatInt(n, 10))
	return err
}

func (s *Seeder) dropInstanceKeys(ctx context.Context, names []string) error {
	keys := layout.InstanceKeys(s.target.Keys())
	var ops []clientv3.Op
	for _, name := range names {
		key, ok := keys[name]
		if !ok {
			return fmt.Errorf("no instance key %q: want some of %v", name, layout.InstanceKeyNames())
		}
		ops = append(ops, clientv3.OpDelete(key))
	}
	return s.commit(ctx, ops)
}

func (s *Seeder) writeMilvus(ctx context.Context, specs []milvusfixture.Spec) error {
	for _, spec := range specs {
		keys, err := spec.Load(ctx, s.etcd)
		if err != nil {
			return err
		}
		s.say("milvus under %s: %d keys", spec.Root, keys)
	}
	return nil
}
