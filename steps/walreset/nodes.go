package walreset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"runbook/internal/fault"
	"runbook/internal/retry"
	"runbook/internal/woodpecker"
)

const (
	// autoSweep bounds nodeSweep: auto. A node keeps one small file for each id
	// that is marked until its grace period is over.
	autoSweep = 100_000
	// provedSweep bounds how many swept ids are asked about one by one: a node
	// keeps a little memory and a metric for each log it is asked about.
	provedSweep = 1000

	gatePoll = 200 * time.Millisecond
	// silence is how many attempts long a node may be away while it is waited
	// for: it may be restarting, and its marks survive that.
	silence = 3
)

// fleet is what is known of the log-store nodes.
type fleet struct {
	nodes   []woodpecker.KnownNode
	alive   []woodpecker.KnownNode
	skipped []SkippedNode
	sweep   int64 // ids 1 to sweep are marked on every node; 0: no sweep
}

// nodesAnswer finds the nodes and refuses while one that may hold data is away.
func (r *reset) nodesAnswer(ctx context.Context, found *inventory) error {
	if r.settings.WAL.StorageType != onNodes {
		return nil
	}
	f := &found.nodes
	var err error
	f.nodes, err = woodpecker.Nodes(ctx, found.md, r.settings.WAL.NodeSeeds, r.node)
	if err != nil {
		return err
	}
	var away []woodpecker.KnownNode
	for _, node := range f.nodes {
		switch {
		case node.Err == nil:
			f.alive = append(f.alive, node)
		case node.MovedTo != "":
			found.warnings = append(found.warnings, fmt.Sprintf("log-store node %s has moved from %s to %s", node.ID, node.Address, node.MovedTo))
		default:
			away = append(away, node)
		}
	}
	if err := r.someNodeKnown(found); err != nil || len(f.nodes) == 0 {
		return err
	}
	if err := r.refuseAway(f, away); err != nil {
		return err
	}
	r.planSweep(found)
	return nil
}

// node is the client of one node, calling it as long as the step says.
func (r *reset) node(address string) (*woodpecker.Node, error) {
	node, err := r.env.Instance.Node(address)
	if err != nil {
		return nil, err
	}
	return node.With(r.policy()), nil
}

// someNodeKnown refuses when segments lie on nodes that nothing names. Metadata
// written before quorums were recorded is like that; a client would then call
// 127.0.0.1, which is never right.
func (r *reset) someNodeKnown(found *inventory) error {
	if len(found.nodes.nodes) > 0 {
		return nil
	}
	var names []string
	for _, entry := range found.md.Logs {
		if entry.NoQuorum > 0 {
			names = append(names, entry.Name)
		}
	}
	if len(names) > 0 {
		return fault.Refuse("wal.no-node-known", "nothing says which log-store nodes hold the segments of %s: they were written before that was recorded", some(names)).
			At(found.md.Keys.Logs()).
			Hint("set instance.wal.nodeSeeds to host:port of one or more log-store nodes of this milvus")
	}
	found.warnings = append(found.warnings, "no log-store node is known, so none was looked at: no segment names one; set instance.wal.nodeSeeds to have their disks swept")
	return nil
}

// refuseAway fails closed: what a node holds that cannot be asked stays on its
// disk, and once the metadata is gone nobody knows of it.
func (r *reset) refuseAway(f *fleet, away []woodpecker.KnownNode) error {
	if len(away) == 0 {
		return nil
	}
	if len(f.alive) == 0 {
		refusal := fault.Refuse("wal.all-nodes-down", "no log-store node answers: %s", joined(describeAway(away)))
		if r.in.SkipUnreachableNodes {
			return refusal.Hint("start at least one: skipUnreachableNodes leaves out some nodes, not all of them").
				Hint("set instance.wal.nodeSeeds if the nodes that run now are others than those in the metadata")
		}
		return refusal.Hint("start the log-store nodes: they must run while milvus is stopped").
			Hint("check that their addresses can be reached from here")
	}
	if !r.in.SkipUnreachableNodes {
		return fault.Refuse("wal.node-down", "%s answer: %s", pluralNot(len(away), "log-store node"), joined(describeAway(away))).
			Hint("start it and apply again: what it holds can only be removed through it").
			Hint("set skipUnreachableNodes: true on this step if it is gone for good; what is left on it is reported then")
	}
	for _, node := range away {
		f.skip(node, node.Err)
	}
	return nil
}

func (f *fleet) skip(node woodpecker.KnownNode, err error) {
	f.skipped = append(f.skipped, SkippedNode{Address: node.Address, Reason: err.Error(), Logs: slices.Clip(append([]string{}, node.Logs...))})
}

func describeAway(away []woodpecker.KnownNode) []string {
	var texts []string
	for _, node := range away {
		text := fmt.Sprintf("%s (%s)", node.Address, node.Err)
		if len(node.Logs) > 0 {
			text = fmt.Sprintf("%s (%s; holds %s)", node.Address, node.Err, some(node.Logs))
		}
		texts = append(texts, text)
	}
	return texts
}

// planSweep decides about marking every id: that removes directories on node
// disks which nothing names, and which no call can list.
func (r *reset) planSweep(found *inventory) {
	ids := max(found.highestID(), found.md.Counter)
	switch {
	case r.in.NodeSweep == "never" || ids == 0:
	case r.in.NodeSweep == "auto" && ids > autoSweep:
		found.warnings = append(found.warnings, fmt.Sprintf("the nodes are not swept for directories that nothing names: %d log ids exist, more than %d; set nodeSweep: always to do it", ids, autoSweep))
	default:
		found.nodes.sweep = ids
	}
}

// target is one node and what it is to be told.
type target struct {
	woodpecker.KnownNode
	client *woodpecker.Node
	known  []int64 // logs that something names
	sweep  []int64 // all other ids
	holds  []int64 // those of known that may lie on this node
	// failed is why the node could not be told or asked any more.
	failed error
}

// targets says which ids each node is told: the logs whose quorums name it; logs
// of which nothing says where they lie, on every node; and with a sweep every id.
func (r *reset) targets(found *inventory) ([]*target, error) {
	var targets []*target
	for _, node := range found.nodes.alive {
		client, err := r.node(node.Address)
		if err != nil {
			return nil, err
		}
		t := &target{KnownNode: node, client: client}
		known := map[int64]bool{}
		for _, l := range found.logs {
			holds := l.liesOn(node, found.nodes.nodes)
			if holds {
				t.holds = append(t.holds, l.id)
			}
			if holds || found.nodes.sweep > 0 {
				t.known, known[l.id] = append(t.known, l.id), true
			}
		}
		for id := int64(1); id <= found.nodes.sweep; id++ {
			if !known[id] {
				t.sweep = append(t.sweep, id)
			}
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// liesOn reports whether node may hold the log: a quorum names its address or,
// under another address, its id; or no quorum says anything.
func (l *log) liesOn(node woodpecker.KnownNode, all []woodpecker.KnownNode) bool {
	if len(l.entries) == 0 {
		return true
	}
	moved := map[string]bool{node.Address: true}
	for _, other := range all {
		if other.MovedTo == node.Address {
			moved[other.Address] = true
		}
	}
	return slices.ContainsFunc(l.entries, func(entry woodpecker.Log) bool {
		return entry.NoQuorum > 0 || slices.ContainsFunc(entry.Nodes, func(replica woodpecker.Replica) bool { return moved[replica.Address] })
	})
}

// mark tells every node which logs are deleted, all at once: each node removes
// its files some seconds later, and there is one wait for all of them. A log
// that a node was not told of is held back.
func (r *reset) mark(ctx context.Context, found *inventory, out *Outputs) ([]*target, error) {
	targets, err := r.targets(found)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	var total int64
	for _, t := range targets {
		total += int64(len(t.known) + len(t.sweep))
	}
	progress := r.env.Report.Progress("marking logs deleted on the nodes", total)
	defer progress.Done()
	byID := found.byID()
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	for _, t := range targets {
		group.Go(func() error {
			return r.onNode(groupCtx, t, slices.Concat(t.known, t.sweep), func(ctx context.Context, ref woodpecker.LogRef) error {
				err := t.client.Mark(ctx, ref)
				mu.Lock()
				defer mu.Unlock()
				l := byID[ref.ID()]
				switch {
				case err == nil && l != nil:
					out.Nodes.Marked++
				case err == nil:
					out.Nodes.Swept++
				case !woodpecker.Unreachable(err):
					rejects := fault.Fail("wal.node-rejects", "the log-store node does not take the mark of log id %d: %s", ref.ID(), err).At(t.Address).
						Hint("look at the node's log, repair what it reports, then apply again")
					if l == nil {
						return rejects // of the sweep: nothing else would say it
					}
					l.hold(rejects)
					return nil
				}
				progress.Add(1)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return r.dropFailed(found, targets, out)
}

// onNode does something with each id on one node, some at a time. A node that
// stops answering is marked as failed and left alone; other errors end it.
func (r *reset) onNode(ctx context.Context, t *target, ids []int64, do func(context.Context, woodpecker.LogRef) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.in.Parallel, 1))
	for _, id := range ids {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			ref, err := r.space.Log(id)
			if err != nil {
				return err
			}
			return do(groupCtx, ref)
		})
	}
	err := group.Wait()
	if woodpecker.Unreachable(err) && ctx.Err() == nil {
		t.failed = err
		return nil
	}
	return err
}

// dropFailed deals with nodes that went away in the middle: what they hold is
// held back, or they are left out when the plan says so.
func (r *reset) dropFailed(found *inventory, targets []*target, out *Outputs) ([]*target, error) {
	byID := found.byID()
	var left []*target
	var lost *fault.Error
	for _, t := range targets {
		if t.failed == nil {
			left = append(left, t)
			continue
		}
		if r.in.SkipUnreachableNodes {
			found.nodes.skip(t.KnownNode, t.failed)
			out.Nodes.Skipped = found.nodes.skipped
			r.env.Report.Warn("log-store node %s is left out: %s", t.Address, t.failed)
			continue
		}
		lost = fault.Fail("wal.node-lost", "the log-store node went away: %s", t.failed).At(t.Address).
			Hint("start it, then apply again: it finishes what is left")
		for _, id := range t.holds {
			byID[id].hold(lost)
		}
		if len(t.holds) == 0 {
			found.swept(lost)
		}
	}
	switch {
	case len(left) > 0 || len(targets) == 0:
		return left, nil
	case lost != nil:
		return nil, lost
	default:
		return nil, fault.Fail("wal.all-nodes-down", "no log-store node answers any more").
			Hint("start the log-store nodes, then apply again")
	}
}

// waitForReclaim waits until the nodes have removed what was marked: a node says
// "being deleted" about a marked log until its files are gone.
func (r *reset) waitForReclaim(ctx context.Context, found *inventory, targets []*target, out *Outputs) error {
	if len(targets) == 0 {
		return nil
	}
	var total int64
	for _, t := range targets {
		total += int64(len(t.known) + len(proof(t.sweep)))
	}
	progress := r.env.Report.Progress(fmt.Sprintf("waiting for the nodes to remove their files (at most %s)", r.in.ReclaimTimeout), total)
	defer progress.Done()
	deadline := r.env.Now().Add(r.in.ReclaimTimeout)
	group, groupCtx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for _, t := range targets {
		group.Go(func() error {
			w := wait{r: r, t: t, pending: slices.Concat(t.known, proof(t.sweep)), deadline: deadline}
			err := w.until(groupCtx, func(n int) {
				progress.Add(int64(n))
				mu.Lock()
				defer mu.Unlock()
				out.Nodes.Reclaimed += int64(n)
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			r.stillThere(found, t, w.pending)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := r.dropFailed(found, targets, out)
	return err
}

// stillThere holds back the logs that a node did not remove in time.
func (r *reset) stillThere(found *inventory, t *target, pending []int64) {
	if len(pending) == 0 || t.failed != nil {
		return
	}
	err := fault.Fail("wal.reclaim-timeout", "the log-store node has not removed %s after %s", pluralOf(len(pending), "log"), r.in.ReclaimTimeout).At(t.Address).
		Hint("set reclaimTimeout higher than the node's woodpecker.logstore.maintenanceStrategy.deleteGracePeriod and deleteReclaimInterval together").
		Hint("look at the node's log: it tries again and says why a directory cannot be removed")
	byID := found.byID()
	for _, id := range pending {
		if l := byID[id]; l != nil {
			l.hold(err)
			continue
		}
		found.swept(err)
	}
}

// proof chooses the swept ids that are asked about. All were marked before the
// first is asked, and a node removes all that are due in one pass.
func proof(sweep []int64) []int64 {
	if len(sweep) <= provedSweep {
		return sweep
	}
	chosen := make([]int64, 0, provedSweep)
	for i := range provedSweep {
		chosen = append(chosen, sweep[i*(len(sweep)-1)/(provedSweep-1)])
	}
	return chosen
}

// wait asks one node about the ids that it has not removed yet.
type wait struct {
	r        *reset
	t        *target
	pending  []int64
	deadline time.Time
}

// until asks until nothing is pending, time is up or the node is away too long.
// As long as the first ids are not removed the others need no asking.
func (w *wait) until(ctx context.Context, removed func(n int)) error {
	silentSince := time.Time{}
	for len(w.pending) > 0 {
		gone, err := w.ask(ctx, w.pending[:min(len(w.pending), max(w.r.in.Parallel, 1))])
		now := w.r.env.Now()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case woodpecker.Unreachable(err):
			if silentSince.IsZero() {
				silentSince = now
			}
			if now.Sub(silentSince) > silence*w.r.in.AttemptTimeout {
				w.t.failed = err
				return nil
			}
		case err != nil:
			return fault.Fail("wal.node-rejects", "the log-store node cannot be asked what it has removed: %s", err).At(w.t.Address).
				Hint("look at the node's log, repair what it reports, then apply again")
		default:
			silentSince = time.Time{}
		}
		if len(gone) > 0 {
			w.pending = slices.DeleteFunc(w.pending, func(id int64) bool { return slices.Contains(gone, id) })
			removed(len(gone))
			continue
		}
		if now.After(w.deadline) {
			return nil
		}
		if err := pause(ctx, gatePoll); err != nil {
			return err
		}
	}
	return nil
}

// ask returns those of ids that the node has removed.
func (w *wait) ask(ctx context.Context, ids []int64) ([]int64, error) {
	var mu sync.Mutex
	var gone []int64
	group, ctx := errgroup.WithContext(ctx)
	once := w.t.client.With(retry.Policy{Attempts: 1, Attempt: w.r.in.AttemptTimeout})
	for _, id := range ids {
		group.Go(func() error {
			ref, err := w.r.space.Log(id)
			if err != nil {
				return err
			}
			gate, err := once.Gate(ctx, ref)
			if err != nil || gate.Up {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, id)
			return nil
		})
	}
	return gone, group.Wait()
}

// nothingWritten asks the nodes once more, last of all: a client that wrote
// behind our back after a node's gate went down has made new blocks.
func (r *reset) nothingWritten(ctx context.Context, found *inventory, targets []*target) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, t := range targets {
		if t.failed != nil {
			continue
		}
		group.Go(func() error {
			return r.onNode(groupCtx, t, t.known, func(ctx context.Context, ref woodpecker.LogRef) error {
				gate, err := t.client.Gate(ctx, ref)
				if err == nil && gate.Blocks > 0 {
					return writtenBehind(t.Address, ref.ID())
				}
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var lost []error
	for _, t := range targets {
		if t.failed != nil && !r.in.SkipUnreachableNodes {
			lost = append(lost, fault.Fail("wal.node-lost", "the log-store node went away before the last look: %s", t.failed).At(t.Address).
				Hint("start it, then apply again"))
		}
	}
	return errors.Join(lost...)
}

func writtenBehind(address string, id int64) error {
	return fault.Fail("wal.written-behind", "log id %d was written to again after it was deleted", id).At(address).
		Hint("find the woodpecker client that writes (assertStopped looks for milvus only), stop it, then apply again")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
