package walreset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/claim"
	"runbook/internal/failpoint"
	"runbook/internal/fault"
	"runbook/internal/woodpecker"
)

// maxTxnOps is how many operations, or compares, one transaction holds: etcd
// takes 128 of each unless configured otherwise.
const maxTxnOps = 120

// txn is a transaction in the making.
type txn struct {
	cmps  []clientv3.Cmp
	ops   []clientv3.Op
	names []string
}

// clearLogs deletes the metadata of every log that is gone from the other tiers.
// A log goes in one transaction, together with others. Ranges are deleted, so the
// number of segments does not matter; each compares that nothing below it was
// written since it was read, which also holds once it is deleted.
func (r *reset) clearLogs(ctx context.Context, found *inventory, out *Outputs) error {
	progress := r.env.Report.Progress("deleting metadata", int64(len(found.md.Logs)))
	defer progress.Done()
	batch := r.newTxn(found)
	for _, l := range found.logs {
		if l.held != nil || len(l.entries) == 0 {
			continue
		}
		next := r.logTxn(found, l)
		if len(batch.names) > 0 && !batch.takes(next) {
			if err := r.apply(ctx, batch); err != nil {
				return err
			}
			progress.Add(int64(len(batch.names)))
			batch = r.newTxn(found)
		}
		batch.add(next)
		out.count(l)
	}
	if len(batch.names) == 0 {
		return nil
	}
	err := r.apply(ctx, batch)
	progress.Add(int64(len(batch.names)))
	return err
}

func (r *reset) newTxn(found *inventory) *txn { return &txn{cmps: []clientv3.Cmp{r.counterIs(found)}} }

func (t *txn) takes(next *txn) bool {
	return len(t.cmps)+len(next.cmps)+claim.GuardCompares <= maxTxnOps && len(t.ops)+len(next.ops) <= maxTxnOps
}

func (t *txn) add(next *txn) {
	t.cmps, t.ops, t.names = append(t.cmps, next.cmps...), append(t.ops, next.ops...), append(t.names, next.names...)
}

// logTxn is what deletes all metadata of one log id.
func (r *reset) logTxn(found *inventory, l *log) *txn {
	t := &txn{}
	for _, entry := range l.entries {
		key := entryKey(found.md.Keys, entry)
		t.names = append(t.names, entry.Name)
		t.cmps = append(t.cmps, unchanged(key, found.revision), unchanged(key+"/", found.revision))
		t.ops = append(t.ops, clientv3.OpDelete(key), clientv3.OpDelete(key+"/", clientv3.WithPrefix()))
	}
	for _, prefix := range found.md.Keys.OfLogID(l.id) {
		t.ops = append(t.ops, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	}
	return t
}

func entryKey(keys woodpecker.Keys, entry woodpecker.Log) string {
	if entry.Parked {
		return keys.ParkedKey(entry.Name)
	}
	return keys.LogKey(entry.Name)
}

// unchanged compares that nothing at key, or below it if it ends in a slash, was
// written after revision. What does not exist compares as never written.
func unchanged(key string, revision int64) clientv3.Cmp {
	cmp := clientv3.Compare(clientv3.ModRevision(key), "<", revision+1)
	if strings.HasSuffix(key, "/") {
		return cmp.WithPrefix()
	}
	return cmp
}

func (r *reset) apply(ctx context.Context, t *txn) error {
	err := r.commit(ctx, t.cmps, t.ops...)
	if errors.Is(err, claim.ErrChanged) {
		return fault.Fail("wal.metadata-changed", "the log id counter or the metadata of %s was written to while the WAL was being emptied", some(t.names)).
			Hint("find the woodpecker client that is still at work, stop it, then apply again")
	}
	if err == nil {
		failpoint.Hit("walreset/metadata-cleared")
	}
	return err
}

// clearInstance deletes what is left below the prefix once all logs are gone:
// records of ids that no log has, segments without a log, quorums of early
// versions, the cached setting. The four instance keys are never deleted, so no
// client can ever see only some of them; the uuid among them is read by nothing
// and is kept, which lets an interrupted run end in the same state as another.
func (r *reset) clearInstance(ctx context.Context, found *inventory, out *Outputs) error {
	left, revision, err := r.metadata(ctx, found.md.Keys.Prefix())
	if err != nil {
		return err
	}
	if len(left.Logs) > 0 {
		return fault.Fail("wal.metadata-changed", "log %s was created while the WAL was being emptied", left.Logs[0].Name).
			Hint("find the woodpecker client that is still at work, stop it, then apply again")
	}
	if left.Total == 0 && left.QuorumCounter == "0" {
		return nil
	}
	keys := left.Keys
	t := r.newTxn(found)
	t.names = []string{keys.Prefix()}
	for _, key := range keys.InstanceKeys() {
		t.cmps = append(t.cmps, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}
	for _, prefix := range keys.Content() {
		t.cmps = append(t.cmps, unchanged(prefix, revision))
		t.ops = append(t.ops, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	}
	t.ops = append(t.ops, clientv3.OpDelete(keys.ConditionWrite()), clientv3.OpPut(keys.QuorumCounter(), "0"))
	if err := r.apply(ctx, t); err != nil {
		return err
	}
	for _, headless := range left.Headless {
		out.Metadata.Segments += headless.Segments
	}
	return nil
}

// heldBack is the error about all logs that had to stay, nil when there is none.
// Of each kind of reason the first is told, with the names of all its logs.
func (f *inventory) heldBack() error {
	names := map[string][]string{}
	var reasons []*fault.Error
	for _, l := range f.logs {
		if l.held == nil {
			continue
		}
		if names[l.held.Code] == nil {
			reason := *l.held
			reasons = append(reasons, &reason)
		}
		names[l.held.Code] = append(names[l.held.Code], l.name())
	}
	all := slices.Clone(f.sweepErrs)
	for _, reason := range reasons {
		reason.Msg = fmt.Sprintf("%s; metadata kept of %s", reason.Msg, some(names[reason.Code]))
		all = append(all, reason)
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
