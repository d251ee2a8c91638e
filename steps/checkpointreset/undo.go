package checkpointreset

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/fault"
	"runbook/internal/journal"
	"runbook/internal/milvus"
	"runbook/internal/step"
)

// Undo goes through the before-image key by key. A key that holds what the run
// wrote gets its old value back; one that holds its old value already is done; one
// that holds anything else was changed since by somebody, and is theirs.

// restored is what an undo found and, after a run of it, what it did.
type restored struct {
	head    header
	image   string
	groups  []*restoredGroup // in the order of the image
	changed sample           // keys that somebody else changed since
	emptied bool             // old positions lie in the WAL that the run switched to
}

type restoredGroup struct {
	name          string
	back, already int64 // keys to put back (or put back), keys that are as they were
}

func (r *restored) group(name string) *restoredGroup {
	for _, g := range r.groups {
		if g.name == name {
			return g
		}
	}
	g := &restoredGroup{name: name}
	r.groups = append(r.groups, g)
	return g
}

func (r *restored) keys() (back int64) {
	for _, g := range r.groups {
		back += g.back
	}
	return back
}

func previewUndo(ctx context.Context, env *step.Env, image *journal.Image) (step.Preview, error) {
	found, err := lookBack(ctx, env, image)
	if err != nil {
		return step.Preview{}, err
	}
	p := step.Preview{Lines: found.lines("to put back"), Changes: found.keys() > 0}
	if found.changed.n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d keys were changed by somebody else since and are left as they are: %s", found.changed.n, found.changed.text()))
	}
	if found.emptied && found.keys() > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the old positions lie in %s too: if its WAL was emptied, milvus will look for messages that are gone", found.head.TargetWal))
	}
	return p, nil
}

func runUndo(ctx context.Context, env *step.Env, image *journal.Image) (step.Summarizer, error) {
	found, err := lookBack(ctx, env, image)
	if err != nil {
		return nil, err
	}
	done, err := putBack(ctx, env, image, found.keys())
	if err != nil {
		return nil, err
	}
	if err := verifyUndone(ctx, env, image); err != nil {
		return nil, err
	}
	return done, done.leftover()
}

func putBack(ctx context.Context, env *step.Env, image *journal.Image, keys int64) (*restored, error) {
	client, err := env.Instance.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	progress := env.Report.Progress("putting positions back", keys)
	defer progress.Done()
	w := &writer{kv: client, claim: env.Claim, progress: progress}
	done, err := compareWithImage(ctx, env, image, func(back write) error { return w.add(ctx, back) }, func(int) {})
	if err == nil {
		err = w.flush(ctx)
	}
	return done, err
}

// lookBack compares and writes nothing.
func lookBack(ctx context.Context, env *step.Env, image *journal.Image) (*restored, error) {
	progress := env.Report.Progress("comparing with the before-image", 0)
	defer progress.Done()
	return compareWithImage(ctx, env, image, func(write) error { return nil }, func(n int) { progress.Add(int64(n)) })
}

// verifyUndone reads everything again: nothing is left to put back.
func verifyUndone(ctx context.Context, env *step.Env, image *journal.Image) error {
	found, err := lookBack(ctx, env, image)
	if err == nil && found.keys() > 0 {
		err = fault.Fail("undo.not-restored", "%d keys do not hold their old values after they were written", found.keys()).
			Hint("find out what else writes to this instance, then undo again")
	}
	return err
}

// leftover is the error of an undo that is done but for the keys of others.
func (r *restored) leftover() error {
	if r.changed.n == 0 {
		return nil
	}
	return fault.Fail("undo.changed-since", "%d keys were changed by somebody else since and are left as they are; %d were put back: %s",
		r.changed.n, r.keys(), r.changed.text()).
		Hint("compare these keys with the before-image (zstdcat %s) and decide which value is right before you start milvus", r.image)
}

// compareWithImage holds the image against etcd as it is now, passes each key that
// is to be put back to back, and tells seen how many keys it compared.
func compareWithImage(ctx context.Context, env *step.Env, image *journal.Image, back func(write) error, seen func(int)) (*restored, error) {
	client, err := env.Instance.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	found := &restored{image: image.Path}
	c := &comparer{kv: client, found: found, back: back, seen: seen}
	err = readImage(image, func(head header) error {
		found.head = head
		if meta := env.Instance.Settings.MetaRoot(); head.MetaRoot != meta {
			return fault.Refuse("undo.other-instance", "this before-image is of %s, not of %s", head.MetaRoot, meta).At(image.Path).
				Hint("undo the run that it belongs to")
		}
		return nil
	}, func(r record) error { return c.add(ctx, r) })
	if err == nil {
		err = c.flush(ctx)
	}
	return found, err
}

// comparer reads what keys hold now, many in one request.
type comparer struct {
	kv    clientv3.KV
	found *restored
	back  func(write) error
	seen  func(int)

	batch []record
	bytes int
}

func (c *comparer) add(ctx context.Context, r record) error {
	if len(c.batch) == batchOps || c.bytes+len(r.Value) > batchBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.batch, c.bytes = append(c.batch, r), c.bytes+len(r.Value)
	return nil
}

func (c *comparer) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	now, err := getAll(ctx, c.kv, c.batch)
	if err != nil {
		return err
	}
	for i, r := range c.batch {
		if err := c.compare(r, now[i]); err != nil {
			return err
		}
	}
	c.seen(len(c.batch))
	c.batch, c.bytes = c.batch[:0], 0
	return nil
}

func getAll(ctx context.Context, kv clientv3.KV, records []record) ([]*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var ops []clientv3.Op
	for _, r := range records {
		ops = append(ops, clientv3.OpGet(r.Key))
	}
	resp, err := kv.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read %d keys from %s on: %w", len(records), records[0].Key, err)
	}
	now := make([]*mvccpb.KeyValue, len(records))
	for i, one := range resp.Responses {
		if kvs := one.GetResponseRange().Kvs; len(kvs) > 0 {
			now[i] = kvs[0]
		}
	}
	return now, nil
}

func (c *comparer) compare(r record, now *mvccpb.KeyValue) error {
	group := c.found.group(r.Group)
	c.noteWAL(r)
	switch {
	case now != nil && bytes.Equal(now.Value, r.Value):
		group.already++
		return nil
	case now == nil && r.After == "":
		group.back++
		return c.back(write{group: r.Group, key: r.Key, value: r.Value})
	case now != nil && sumOf(now.Value) == r.After:
		group.back++
		return c.back(write{group: r.Group, key: r.Key, value: r.Value, revision: now.ModRevision})
	case now == nil:
		c.found.changed.add("%s: removed", r.Key)
	default:
		c.found.changed.add("%s: changed at revision %d", r.Key, now.ModRevision)
	}
	return c.movedOn(r, now)
}

// noteWAL sees whether going back means positions in the same WAL: whoever made a
// plan that resets it, emptied it first.
func (c *comparer) noteWAL(r record) {
	if r.Group != milvus.ConsumeCheckpoints.String() {
		return
	}
	checkpoint, err := milvus.ReadConsumeCheckpoint(r.Value)
	if err == nil && checkpoint.WAL.String() == c.found.head.TargetWal {
		c.found.emptied = true
	}
}

// movedOn refuses the whole undo when a consume checkpoint has advanced: then
// Milvus has run since and written to its new WAL, and old positions beside new
// ones would keep it from starting at all.
func (c *comparer) movedOn(r record, now *mvccpb.KeyValue) error {
	if r.Group != milvus.ConsumeCheckpoints.String() || now == nil {
		return nil
	}
	before, err1 := milvus.ReadConsumeCheckpoint(r.Value)
	after, err2 := milvus.ReadConsumeCheckpoint(now.Value)
	if err1 != nil || err2 != nil || after.TimeTick <= before.TimeTick {
		return nil
	}
	return fault.Refuse("undo.milvus-ran", "milvus has run since the reset: this checkpoint moved on, and what was written since is in the %s WAL", after.WAL).At(r.Key).
		Hint("to go back to the old WAL, apply a plan that switches to it: what was written since must be flushed first")
}

// lines shows each group; back says in words what is done to the keys that go back.
func (r *restored) lines(back string) []step.Line {
	lines := []step.Line{{Subject: "before-image", Value: fmt.Sprintf("of %s, read at revision %d", r.head.MetaRoot, r.head.Revision)}}
	for _, g := range r.groups {
		value := fmt.Sprintf("%d %s", g.back, back)
		if g.already > 0 {
			value += fmt.Sprintf(", %d as they were", g.already)
		}
		lines = append(lines, step.Line{Subject: g.name, Value: value})
	}
	if r.changed.n > 0 {
		lines = append(lines, step.Line{Subject: "changed since", Value: fmt.Sprintf("%d left as they are", r.changed.n), Detail: r.changed.lines()})
	}
	return lines
}

// Summary says what a finished undo did.
func (r *restored) Summary() []step.Line { return r.lines("put back") }
