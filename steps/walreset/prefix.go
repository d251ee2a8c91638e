package walreset

import (
	"context"
	"errors"
	"path"
	"strings"

	"runbook/internal/fault"
	"runbook/internal/milvus"
	"runbook/internal/woodpecker"
)

// choosePrefix finds where the metadata lies; "" when there is none and the plan
// says that this may be.
func (r *reset) choosePrefix(ctx context.Context, found *inventory) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.in.AttemptTimeout)
	defer cancel()
	survey, err := woodpecker.Look(ctx, r.etcd, r.settings.Etcd.RootPath, r.settings.WAL.MetaPrefix)
	if err != nil {
		return "", r.etcdFailed(err)
	}
	prefix, notes, err := survey.Choose(r.settings.WAL.MetaPrefix)
	found.warnings = append(found.warnings, notes...)
	refusal, ok := errors.AsType[*fault.Error](err)
	switch {
	case err == nil && prefix == woodpecker.LegacyPrefix:
		return prefix, r.nobodyShares(ctx)
	case err == nil:
		return prefix, nil
	case !ok || refusal.Code != woodpecker.CodeNoWAL || len(survey.Sites) > 0:
		return "", err
	case r.in.WhenNoWAL == "verify" && !survey.Legacy:
		return "", nil
	default:
		return "", r.tellWhatThereIs(ctx, refusal)
	}
}

// nobodyShares refuses the legacy prefix while another Milvus of this etcd may
// keep its logs there too: every client of that age does.
func (r *reset) nobodyShares(ctx context.Context) error {
	roots, err := milvus.MetaRoots(ctx, r.etcd)
	if err != nil {
		return fault.Refuse("wal.legacy-unknown", "it cannot be found out whether another milvus shares the legacy prefix %s", woodpecker.LegacyPrefix).
			Because(err).Hint("let the user in instance.etcd read the keys of the whole etcd")
	}
	for _, root := range roots {
		if root == r.settings.MetaRoot() {
			continue
		}
		stored, err := milvus.StoredPositions(ctx, r.etcd, root)
		if counts := stored.WALs; err == nil && len(counts) > 0 && counts[milvus.Woodpecker]+counts[milvus.Unknown] == 0 {
			continue // its positions name other WALs only
		}
		return fault.Refuse("wal.legacy-shared", "the legacy prefix %s may also hold the logs of the milvus at %s", woodpecker.LegacyPrefix, path.Dir(root)).
			At(woodpecker.NewKeys(woodpecker.LegacyPrefix).Logs()).
			Hint("move one of the two to an etcd of its own first; what lies at the legacy prefix cannot be told apart")
	}
	return nil
}

// tellWhatThereIs adds to a refusal what the operator may have meant.
func (r *reset) tellWhatThereIs(ctx context.Context, refusal *fault.Error) error {
	metaRoots, err := milvus.MetaRoots(ctx, r.etcd)
	if err != nil {
		return refusal.Hint("check instance.etcd.rootPath and endpoints: this etcd user may not look at what else there is")
	}
	known := false
	var others []string
	for _, metaRoot := range metaRoots {
		if metaRoot == r.settings.MetaRoot() {
			known = true
			continue
		}
		others = append(others, path.Dir(metaRoot))
	}
	for _, root := range others {
		if prefix := r.woodpeckerBelow(ctx, root); prefix != "" {
			refusal.Hint("set instance.etcd.rootPath: %s if that milvus is meant: its woodpecker lies at %s", root, prefix)
		}
	}
	switch {
	case len(metaRoots) == 0:
		refusal.Hint("check instance.etcd.endpoints: this etcd holds no milvus at all")
	case !known:
		refusal.Hint("check instance.etcd.rootPath: this etcd holds the milvus instances %s", some(others))
	}
	return refusal.Hint("set whenNoWal: verify on this step if the instance never used woodpecker")
}

// woodpeckerBelow is the prefix of a complete woodpecker below another Milvus's root.
func (r *reset) woodpeckerBelow(ctx context.Context, root string) string {
	for _, prefix := range woodpecker.PrefixesOf(root) {
		if !strings.HasPrefix(prefix, root+"/") {
			continue
		}
		if site, err := woodpecker.SiteAt(ctx, r.etcd, prefix); err == nil && len(site.Missing) == 0 {
			return prefix
		}
	}
	return ""
}
