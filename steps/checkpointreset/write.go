package checkpointreset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/claim"
	"runbook/internal/failpoint"
	"runbook/internal/fault"
	"runbook/internal/journal"
	"runbook/internal/milvus"
	"runbook/internal/retry"
	"runbook/internal/step"
)

// Limits of one transaction. etcd takes 128 operations and 1.5 MiB as it comes;
// Milvus itself stays below 64 operations.
const (
	batchOps   = 50
	batchBytes = 512 << 10
)

// writeAttempts is how often a transaction is tried whose fate is not known or
// that found etcd without a leader.
const writeAttempts = 5

// rewrite writes what the image says, in its order, and returns the revision of
// the last write. It reads from the image on disk, not from etcd: what is written
// is exactly what can be put back.
func rewrite(ctx context.Context, env *step.Env, found *findings, image *journal.Image) (int64, error) {
	client, err := env.Instance.Etcd(ctx)
	if err != nil {
		return 0, err
	}
	progress := env.Report.Progress("writing positions", found.changes())
	defer progress.Done()
	w := &writer{kv: client, claim: env.Claim, progress: progress, revision: found.revision}
	err = readImage(image, func(header) error { return nil }, func(r record) error {
		after, err := found.after(r)
		if err != nil {
			return err
		}
		return w.add(ctx, write{group: r.Group, key: r.Key, value: after, remove: r.After == "", revision: r.ModRevision})
	})
	if err == nil {
		err = w.flush(ctx)
	}
	return w.revision, err
}

// after works out what the record's key is to hold. The image has its checksum
// only, which must match: the program that writes is the one that read.
func (f *findings) after(r record) (after []byte, err error) {
	switch r.Group {
	case milvus.Collections.String():
		after, _, err = f.target.RewriteCollection(r.Value, f.scoped)
	case milvus.Segments.String():
		after, _, err = f.target.RewriteSegment(r.Value)
	case milvus.ChannelCheckpoints.String():
		after, _, err = f.target.RewriteChannelCheckpoint(r.Value)
	case milvus.ConsumeCheckpoints.String():
		after, _, err = f.target.RewriteConsumeCheckpoint(r.Value)
	case pinGroup:
		after = []byte(f.in.TargetWal)
	default:
		if r.After != "" {
			return nil, fmt.Errorf("%s: nothing is written to %s", r.Key, r.Group)
		}
		return nil, nil
	}
	if err == nil && sumOf(after) != r.After {
		err = errors.New("the before-image does not belong to this run")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key, err)
	}
	return after, nil
}

// write is one key to write or to remove.
type write struct {
	group    string
	key      string
	value    []byte
	remove   bool
	revision int64 // the key's mod revision as read; 0: it must not exist
}

// op and guard are the two sides of one write in a transaction.
func (w write) op() clientv3.Op {
	if w.remove {
		return clientv3.OpDelete(w.key)
	}
	return clientv3.OpPut(w.key, string(w.value))
}

func (w write) guard() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(w.key), "=", w.revision)
}

func (w write) size() int { return 2*len(w.key) + len(w.value) }

// writer gathers writes into guarded transactions. One transaction holds keys of
// one group, so that the groups are written strictly one after the other.
type writer struct {
	kv       clientv3.KV
	claim    *claim.Claim
	progress step.Progress

	batch    []write
	bytes    int
	revision int64 // of the last transaction
}

func (w *writer) add(ctx context.Context, next write) error {
	full := len(w.batch) == batchOps || w.bytes+next.size() > batchBytes
	if len(w.batch) > 0 && (full || w.batch[0].group != next.group) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.batch, w.bytes = append(w.batch, next), w.bytes+next.size()
	return nil
}

// flush commits what was gathered.
func (w *writer) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	var guards []clientv3.Cmp
	var ops []clientv3.Op
	for _, one := range w.batch {
		guards, ops = append(guards, one.guard()), append(ops, one.op())
	}
	again := false
	err := retry.Policy{Attempts: writeAttempts}.Do(ctx, func(ctx context.Context) error {
		if again {
			// The answer to the first attempt was lost; the transaction may be done.
			done, err := w.applied(ctx)
			if err != nil || done {
				return err
			}
		}
		again = true
		revision, err := w.claim.Commit(ctx, guards, ops...)
		if err == nil {
			w.revision = revision
		}
		return err
	})
	if err != nil {
		return w.explain(ctx, err)
	}
	failpoint.Hit("checkpointreset/" + strings.ReplaceAll(w.batch[0].group, " ", "-"))
	w.progress.Add(int64(len(w.batch)))
	w.batch, w.bytes = w.batch[:0], 0
	return nil
}

// applied says whether the batch is in etcd: a transaction is there as a whole or
// not at all, so its first key tells.
func (w *writer) applied(ctx context.Context) (bool, error) {
	first := w.batch[0]
	current, err := get(ctx, w.kv, first.key)
	if err != nil {
		return false, err
	}
	if first.remove {
		return current == nil, nil
	}
	if current == nil || current.ModRevision == first.revision || string(current.Value) != string(first.value) {
		return false, nil
	}
	w.revision = current.ModRevision
	return true, nil
}

// explain turns a failed transaction into what an operator can act on.
func (w *writer) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, claim.ErrChanged):
		return fault.Fail("positions.changed", "this key changed while milvus is stopped: something else writes here").At(w.changedKey(ctx)).
			Hint("find out what wrote it, stop that, then apply the same plan again: it finishes what is left").Because(err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fault.Fail("positions.too-large", "etcd does not take a value of this size").At(w.largestKey()).
			Hint("raise etcd's --max-request-bytes for the time of this run, then apply the same plan again").Because(err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fault.Fail("positions.no-space", "etcd is out of space").
			Hint("make room: etcdctl compact, etcdctl defrag, or a larger --quota-backend-bytes; then etcdctl alarm disarm").
			Hint("then apply the same plan again: it finishes what is left").Because(err)
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fault.Fail("positions.permission", "this etcd user may not write here").At(w.batch[0].key).
			Hint("give it readwrite permission on the instance's root, then apply the same plan again").Because(err)
	}
	return fmt.Errorf("write %s: %w", w.batch[0].group, err)
}

// changedKey is the first key of the batch that does not hold what was read.
func (w *writer) changedKey(ctx context.Context) string {
	for _, one := range w.batch {
		current, err := get(ctx, w.kv, one.key)
		var revision int64
		if current != nil {
			revision = current.ModRevision
		}
		if err == nil && revision != one.revision {
			return one.key
		}
	}
	return w.batch[0].key
}

func (w *writer) largestKey() string {
	largest := w.batch[0]
	for _, one := range w.batch {
		if one.size() > largest.size() {
			largest = one
		}
	}
	return fmt.Sprintf("%s (%d bytes)", largest.key, len(largest.value))
}

const requestTimeout = 10 * time.Second

// get reads one key as it is now; nil when it does not exist.
func get(ctx context.Context, kv clientv3.KV, key string) (*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := kv.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	return resp.Kvs[0], nil
}
