package walreset

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"runbook/internal/fault"
	"runbook/internal/step"
	"runbook/internal/woodpecker"
)

// checkedIDs bounds how many log ids a node is asked about by the check.
const checkedIDs = 100

// checkEmpty is the live check of walEmpty: it reads every tier again. What a
// node's disk holds no call can tell without an effect on it, so that part rests
// on the run, which saw each node remove what was marked; here the nodes that
// were used are asked whether they still remove something or hold new blocks.
func checkEmpty(ctx context.Context, env *step.Env, in Inputs) error {
	r, err := open(ctx, env, in)
	if err != nil {
		return err
	}
	found := &inventory{}
	prefix, err := r.choosePrefix(ctx, found)
	if err != nil {
		return err
	}
	if err := r.lookAtData(ctx, found); err != nil {
		return err
	}
	if prefix == "" {
		return r.neverUsed(ctx, found)
	}
	if found.md, found.revision, err = r.metadata(ctx, prefix); err != nil {
		return err
	}
	if err := r.noMetadata(found); err != nil {
		return err
	}
	if err := r.noData(found); err != nil {
		return err
	}
	return r.nodesQuiet(ctx, found.md.Counter)
}

func notEmpty(format string, args ...any) *fault.Error {
	return fault.Fail("wal.not-empty", format, args...).Hint("apply the step resetWal again while milvus is stopped")
}

func (r *reset) noMetadata(found *inventory) error {
	md := found.md
	switch {
	case len(md.Missing) > 0:
		return fault.Fail(woodpecker.CodePartial, "instance keys are missing: %s", joined(md.Missing)).At(md.Keys.Prefix())
	case len(md.Logs) > 0:
		return notEmpty("woodpecker has logs: %s", some(entryNames(md.Logs))).At(md.Keys.Logs())
	case md.Total > 0:
		return notEmpty("woodpecker has %d keys besides its instance keys", md.Total).At(md.Keys.Prefix())
	}
	return nil
}

func (r *reset) noData(found *inventory) error {
	if t := found.objects.total(); t.any() {
		return notEmpty("woodpecker has %d objects, %d old versions and %d delete markers", t.objects, t.versions, t.markers).
			At(r.store.Bucket() + "/" + woodpecker.ObjectPrefix(r.root))
	}
	if len(found.local.logs) > 0 {
		return notEmpty("woodpecker has files of %d logs", len(found.local.logs)).At(found.local.dir)
	}
	return nil
}

// nodesQuiet asks the nodes that this process has talked to about the newest ids.
func (r *reset) nodesQuiet(ctx context.Context, counter int64) error {
	if r.settings.WAL.StorageType != onNodes {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, address := range r.env.Instance.UsedNodes() {
		group.Go(func() error {
			node, err := r.node(address)
			if err != nil {
				return err
			}
			for id := max(1, counter-checkedIDs+1); id <= counter; id++ {
				err := r.quiet(ctx, node, id)
				if woodpecker.Unreachable(err) {
					return nil // whether every node is up is another fact
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (r *reset) quiet(ctx context.Context, node *woodpecker.Node, id int64) error {
	ref, err := r.space.Log(id)
	if err != nil {
		return err
	}
	gate, err := node.Gate(ctx, ref)
	switch {
	case err != nil:
		return err
	case gate.Up:
		return notEmpty("a log-store node is still removing log id %d", id).At(node.Address())
	case gate.Blocks > 0:
		return writtenBehind(node.Address(), id)
	}
	return nil
}

func entryNames(entries []woodpecker.Log) []string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name
	}
	return slices.Clip(names)
}
