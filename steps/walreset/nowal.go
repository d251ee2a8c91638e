package walreset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runbook/internal/fault"
	"runbook/internal/milvus"
)

// neverUsed is for whenNoWal: verify. Without metadata an instance counts as
// one that never used woodpecker only when everything else says so too: all its
// positions name other WALs, and no object or file matches the layout.
func (r *reset) neverUsed(ctx context.Context, found *inventory) error {
	refusal := func(format string, args ...any) *fault.Error {
		return fault.Refuse("wal.used", "there is no woodpecker metadata, but "+format, args...)
	}
	if t := found.objects.total(); t.any() {
		return refusal("woodpecker's objects are there: %d", t.objects+t.versions+t.markers).At(r.store.Bucket() + "/" + r.root + "/").
			Hint("restore woodpecker's metadata from a backup of etcd, or point instance.etcd at the etcd that has it")
	}
	if n := len(found.local.logs); n > 0 {
		return refusal("files of %d logs are there", n).At(found.local.dir).
			Hint("restore woodpecker's metadata from a backup of etcd, or point instance.etcd at the etcd that has it")
	}
	stored, err := milvus.StoredPositions(ctx, r.etcd, r.settings.MetaRoot())
	if err != nil {
		return r.etcdFailed(err)
	}
	named := wals(stored.WALs)
	switch {
	case len(named) == 0:
		return refusal("no position is stored either, so nothing proves that another WAL was used").At(r.settings.MetaRoot()).
			Hint("check instance.etcd.rootPath; without any position there is nothing to switch")
	// A switch that was stopped half-way, or is done, leaves positions at the beginning.
	case stored.WALs[milvus.Woodpecker]+stored.WALs[milvus.Unknown] > stored.Fresh:
		return refusal("stored positions name %s", strings.Join(named, " and ")).At(r.settings.MetaRoot()).
			Hint("find woodpecker's metadata: set instance.wal.metaPrefix, or restore it from a backup of etcd")
	}
	if stored.Fresh > 0 {
		named = append(named, "of these, at woodpecker's beginning, where nothing was read yet: "+strconv.FormatInt(stored.Fresh, 10))
	}
	found.warnings = append(found.warnings, fmt.Sprintf("this instance never used woodpecker: its positions name %s, and no woodpecker metadata or data exists; log-store nodes cannot be asked about it", strings.Join(named, "; ")))
	return nil
}

// wals names the WALs that positions name, with how many do.
func wals(counts milvus.WALCounts) []string {
	var names []string
	for wal, n := range counts {
		if n > 0 {
			names = append(names, fmt.Sprintf("%s (%d)", wal, n))
		}
	}
	slices.Sort(names)
	return names
}
