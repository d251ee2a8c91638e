package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/zilliztech/woodpecker/meta"
	wpproto "github.com/zilliztech/woodpecker/proto"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// count reads etcd and the object store itself: a woodpecker client creates an
// instance where it finds none, and hides what it does not list.
type count struct {
	*target
	upTo int64
}

// tally is what count prints. "UpTo" fields count logs with an id up to -up-to.
type tally struct {
	counter         string // value of logidgen; empty when the key is missing
	logs, logsUpTo  int
	lowest, highest int64 // ids of logs; 0 when there is none
	parked          int
	legacyKeys      int64 // keys below the prefix of old woodpecker versions

	objects, objectsUpTo int
	lowestObjectLog      int64
	highestObjectLog     int64
	foreign              int // objects below woodpecker's root that are not its own
	other                int // objects of Milvus itself
}

func (c *count) run(ctx context.Context) error {
	var t tally
	if err := c.countMetadata(ctx, &t); err != nil {
		return err
	}
	if err := c.countObjects(ctx, &t); err != nil {
		return err
	}
	t.print(os.Stdout)
	return nil
}

func (t *tally) print(w io.Writer) {
	fmt.Fprintf(w, "counter=%s\nlogs=%d\nlogs_up_to=%d\nlowest_log=%d\nhighest_log=%d\nparked=%d\nlegacy_keys=%d\n",
		t.counter, t.logs, t.logsUpTo, t.lowest, t.highest, t.parked, t.legacyKeys)
	fmt.Fprintf(w, "objects=%d\nobjects_up_to=%d\nlowest_object_log=%d\nhighest_object_log=%d\nforeign_objects=%d\nother_objects=%d\n",
		t.objects, t.objectsUpTo, t.lowestObjectLog, t.highestObjectLog, t.foreign, t.other)
}

func (c *count) countMetadata(ctx context.Context, t *tally) error {
	etcd, err := c.openEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()
	keys := meta.NewKeyBuilder(c.etcdPrefix())
	found, err := etcd.Get(ctx, keys.LogIdGeneratorKey())
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if len(found.Kvs) == 1 {
		t.counter = string(found.Kvs[0].Value)
	}
	// Built by hand: the builder's own prefix has no slash at the end.
	logs := strings.TrimSuffix(keys.LogsPrefix(), "/") + "/"
	if found, err = etcd.Get(ctx, logs, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	for _, kv := range found.Kvs {
		if strings.Contains(strings.TrimPrefix(string(kv.Key), logs), "/") {
			continue // a segment or a lock of a log
		}
		var log wpproto.LogMeta
		if err := proto.Unmarshal(kv.Value, &log); err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		t.addLog(log.GetLogId(), c.upTo)
	}
	parked := strings.TrimSuffix(keys.LogDeletedPrefix(), "/") + "/"
	if found, err = etcd.Get(ctx, parked, clientv3.WithPrefix(), clientv3.WithKeysOnly()); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	for _, kv := range found.Kvs {
		if !strings.Contains(strings.TrimPrefix(string(kv.Key), parked), "/") {
			t.parked++
		}
	}
	if found, err = etcd.Get(ctx, meta.LegacyServicePrefix+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	t.legacyKeys = found.Count
	return nil
}

func (t *tally) addLog(id, upTo int64) {
	t.logs++
	if id <= upTo {
		t.logsUpTo++
	}
	t.lowest, t.highest = widen(t.lowest, t.highest, id)
}

func (c *count) countObjects(ctx context.Context, t *tally) error {
	objects, err := c.openObjects()
	if err != nil {
		return err
	}
	// Stops the listing when a page failed and the loop was left.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: c.objectRoot + "/", Recursive: true}
	for object := range objects.ListObjects(ctx, c.bucket, options) {
		if object.Err != nil {
			return fmt.Errorf("object store: list %s/%s: %w", c.bucket, options.Prefix, object.Err)
		}
		t.addObject(object.Key, c.walRoot()+"/", c.upTo)
	}
	return nil
}

func (t *tally) addObject(key, walPrefix string, upTo int64) {
	name, ok := strings.CutPrefix(key, walPrefix)
	if !ok {
		t.other++
		return
	}
	id, ok := logOf(name)
	if !ok {
		t.foreign++
		return
	}
	t.objects++
	if id <= upTo {
		t.objectsUpTo++
	}
	t.lowestObjectLog, t.highestObjectLog = widen(t.lowestObjectLog, t.highestObjectLog, id)
}

// logOf reads the log id of an object {log}/{segment}/{file}.
func logOf(name string) (int64, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[2] == "" {
		return 0, false
	}
	if _, err := strconv.ParseUint(parts[1], 10, 63); err != nil {
		return 0, false
	}
	id, err := strconv.ParseUint(parts[0], 10, 63)
	return int64(id), err == nil
}

// widen keeps the lowest and highest id seen; ids start at 1 and 0 means none.
func widen(lowest, highest, id int64) (int64, int64) {
	if lowest == 0 || id < lowest {
		lowest = id
	}
	return lowest, max(highest, id)
}
