package walreset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"runbook/internal/claim"
	"runbook/internal/fault"
	"runbook/internal/milvus"
	"runbook/internal/plan"
	"runbook/internal/woodpecker"
)

// inventory is what was found of the WAL by reading only.
type inventory struct {
	md       *woodpecker.Metadata // nil: there is none, and none is expected
	revision int64                // of etcd, as of which md was read
	resumed  bool                 // an earlier run was interrupted while it emptied this WAL
	logs     []*log               // in the order of their ids
	objects  census
	local    localCensus
	nodes    fleet
	warnings []string

	// sweepErrs are about ids that no log is known to have.
	sweepErrs []error
}

// log is all that exists under one log id.
type log struct {
	id      int64
	entries []woodpecker.Log // live and parked metadata; none for an orphan
	objects tally
	local   woodpecker.LocalLog

	// held is why the log's metadata must stay; nil while everything went well.
	held *fault.Error
}

// name is how an operator looks for the log.
func (l *log) name() string {
	if len(l.entries) == 0 {
		return fmt.Sprintf("log id %d", l.id)
	}
	return l.entries[0].Name
}

// hold keeps the first reason.
func (l *log) hold(err *fault.Error) {
	if l.held == nil {
		l.held = err
	}
}

// look reads all tiers and refuses what it would be wrong to empty.
func (r *reset) look(ctx context.Context) (*inventory, error) {
	found := &inventory{warnings: slices.Clone(r.warnings)}
	if err := r.readMetadata(ctx, found); err != nil {
		return nil, err
	}
	if err := r.lookAtData(ctx, found); err != nil {
		return nil, err
	}
	if found.md == nil {
		return found, r.neverUsed(ctx, found)
	}
	found.collect()
	gates := []func(context.Context, *inventory) error{
		r.storageTypeFits, r.noWriter, r.counterCovers, r.objectsAreHere, r.nodesAnswer,
	}
	for _, gate := range gates {
		if err := gate(ctx, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readMetadata finds the prefix and reads what lies below it.
func (r *reset) readMetadata(ctx context.Context, found *inventory) error {
	prefix, err := r.choosePrefix(ctx, found)
	if err != nil || prefix == "" {
		return err
	}
	marker, _, err := claim.Read(ctx, r.etcd, r.settings.Etcd.RootPath)
	if err != nil {
		return r.etcdFailed(err)
	}
	found.resumed = marker != nil && (marker.Raw != "" || slices.Contains(marker.Owes, string(plan.WALEmpty)))
	found.md, found.revision, err = r.metadata(ctx, prefix)
	return err
}

// metadata reads everything below prefix as of one revision.
func (r *reset) metadata(ctx context.Context, prefix string) (*woodpecker.Metadata, int64, error) {
	const attempts = 3 // etcd may compact the revision while it is read
	for attempt := 1; ; attempt++ {
		view, err := milvus.NewView(ctx, r.etcd, r.settings.MetaRoot())
		if err != nil {
			return nil, 0, r.etcdFailed(err)
		}
		md, err := woodpecker.Read(ctx, view, prefix)
		switch {
		case err == nil:
			return md, view.Revision, nil
		case errors.Is(err, milvus.ErrCompacted) && attempt < attempts:
			continue
		case errors.Is(err, woodpecker.ErrMalformed):
			return nil, 0, fault.Fail("wal.metadata-unreadable", "woodpecker's metadata cannot be read").Because(err).
				Hint("repair or remove the key named, then apply again: without it the log's objects and files cannot be found")
		default:
			return nil, 0, r.etcdFailed(err)
		}
	}
}

// lookAtData counts what lies in the object store or the local path.
func (r *reset) lookAtData(ctx context.Context, found *inventory) error {
	var err error
	if r.store == nil {
		found.local, err = r.countLocal(ctx)
		return err
	}
	found.objects, err = r.countObjects(ctx, "counting objects")
	return err
}

// collect brings together what exists under each log id.
func (f *inventory) collect() {
	byID := map[int64]*log{}
	of := func(id int64) *log {
		if byID[id] == nil {
			byID[id] = &log{id: id}
			f.logs = append(f.logs, byID[id])
		}
		return byID[id]
	}
	for _, entry := range f.md.Logs {
		l := of(entry.ID)
		l.entries = append(l.entries, entry)
	}
	for id, tally := range f.objects.logs {
		of(id).objects = *tally
	}
	for _, local := range f.local.logs {
		of(local.ID).local = local
	}
	slices.SortFunc(f.logs, func(a, b *log) int { return cmp.Compare(a.id, b.id) })
}

func (f *inventory) byID() map[int64]*log {
	byID := make(map[int64]*log, len(f.logs))
	for _, l := range f.logs {
		byID[l.id] = l
	}
	return byID
}

// swept keeps an error about the sweep of a node, once each.
func (f *inventory) swept(err error) {
	if !slices.Contains(f.sweepErrs, err) {
		f.sweepErrs = append(f.sweepErrs, err)
	}
}

// storageTypeFits compares who wrote the segments with who the plan says did.
func (r *reset) storageTypeFits(_ context.Context, found *inventory) error {
	var onNodesNamed []string
	var embedded, others int64
	for _, entry := range found.md.Logs {
		if len(entry.Nodes) > 0 {
			onNodesNamed = append(onNodesNamed, entry.Name)
		}
		embedded += entry.Embedded
		others += entry.Segments - entry.Embedded
	}
	refusal := func(format string, args ...any) *fault.Error {
		return fault.Refuse("wal.storage-type", format, args...).At("instance.wal.storageType")
	}
	switch storage := r.settings.WAL.StorageType; {
	case storage != onNodes && len(onNodesNamed) > 0:
		return refusal("storage type is %s, but log-store nodes hold segments of %s", storage, some(onNodesNamed)).
			Hint("set it to service")
	case storage == onNodes && embedded > 0 && others == 0:
		return refusal("storage type is service, but every segment was written by a woodpecker embedded in milvus").
			Hint("set it to minio, or to local if milvus's woodpecker.storage.type was local")
	}
	return nil
}

// noWriter refuses while a writer's lock stands: whatever wrote it may be alive
// although etcd shows no session of it.
func (r *reset) noWriter(_ context.Context, found *inventory) error {
	if len(found.md.Locked) == 0 {
		return nil
	}
	return fault.Refuse("wal.writer", "something still writes, or did seconds ago: writers hold locks on %s", some(found.md.Locked)).
		At(found.md.Keys.Logs()).
		Hint("stop what writes; the lock of a writer that is gone ends within 15 s, apply again then")
}
