// Package claim is a run's claim on one instance, kept in the instance's etcd:
// the lock that keeps a second run out, the marker that tells of a half-done
// one, and the only function that writes anything else there.
package claim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
	"runbook/internal/milvus"
	"runbook/internal/retry"
)

// commitTimeout bounds one transaction; a caller's earlier deadline wins.
const commitTimeout = 15 * time.Second

// GuardCompares is how many compares Commit adds to those of its caller; etcd
// counts them towards its limit of operations in a transaction (128 by default).
const GuardCompares = 5

// Claim guards every write of a run. All its methods are safe for concurrent use.
type Claim struct {
	client *clientv3.Client
	place  Place
	owner  Owner
	lock   lock

	// state is a mutex whose waiters give up with their context.
	state  chan struct{}
	stage  Stage
	marker *Marker // as this run last wrote it; nil: not begun, or finished
	begun  bool
}

// Begin writes the in-progress marker, once; call it before the first
// destructive effect on any tier. Commit calls it too.
//
// Concurrent callers wait for the one that writes. A failure is not remembered:
// the next caller tries again, and nobody goes on before one has succeeded.
func (c *Claim) Begin(ctx context.Context) error {
	if err := c.enterState(ctx); err != nil {
		return err
	}
	defer c.leaveState()
	if c.marker != nil {
		return nil
	}
	marker, err := c.newMarker(ctx)
	if err != nil {
		return err
	}
	if err := c.insist(ctx, true, clientv3.OpPut(c.place.markerKey(), marker.encode())); err != nil {
		return err
	}
	c.marker, c.begun = marker, true
	failpoint.Hit("claim/marker-written")
	return nil
}

// Begun reports whether this run may have changed something.
func (c *Claim) Begun() bool {
	c.state <- struct{}{}
	defer c.leaveState()
	return c.begun
}

// Commit applies ops in one transaction that also compares that no Milvus
// session exists, that the lock is still held, and every cmp given.
//
// It returns the revision. A failed compare is a *fault.Error, and then nothing
// was written: code "claim.session" names who started, "claim.lock-lost" who
// took over; otherwise code "claim.changed", which wraps ErrChanged: one of cmps
// did not hold. Any other error (a deadline, a lost connection) leaves it open
// whether the transaction was applied.
//
// A first Ctrl-C does not cut a transaction that is under way; none is begun after it.
func (c *Claim) Commit(ctx context.Context, cmps []clientv3.Cmp, ops ...clientv3.Op) (int64, error) {
	if err := c.Begin(ctx); err != nil {
		return 0, err
	}
	return c.commit(ctx, true, cmps, ops...)
}

// ErrChanged says that a key compared by the caller no longer holds what it read.
var ErrChanged = errors.New("a key changed since it was read")

// commit is the one place that writes to the instance's etcd. stopped adds the
// compare that no Milvus session exists.
func (c *Claim) commit(ctx context.Context, stopped bool, cmps []clientv3.Cmp, ops ...clientv3.Op) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	unit, cancel := context.WithTimeout(interrupt.Unit(ctx), commitTimeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		unit, cancel = context.WithDeadline(unit, deadline)
		defer cancel()
	}
	guarded := c.lock.held(c.place)
	if stopped {
		guarded = append(guarded, milvus.NoSession(c.place.MetaRoot)...)
	}
	resp, err := c.client.Txn(unit).If(append(guarded, cmps...)...).Then(ops...).
		Else(clientv3.OpGet(c.place.lockKey())).Commit()
	if err != nil {
		return 0, fmt.Errorf("write to etcd: %w", err)
	}
	if !resp.Succeeded {
		return 0, c.explain(unit, resp)
	}
	return resp.Header.Revision, nil
}

// insist commits what may be repeated, through a hiccup of etcd.
func (c *Claim) insist(ctx context.Context, stopped bool, ops ...clientv3.Op) error {
	return patience().Do(ctx, func(ctx context.Context) error {
		_, err := c.commit(ctx, stopped, nil, ops...)
		return err
	})
}

// patience is how long the claim's own requests outlast a hiccup of etcd: longer
// than an election or a restart takes, shorter than a lock's lease.
func patience() retry.Policy { return retry.Policy{Attempts: 8, Attempt: requestTimeout} }

// explain says which compare failed, the most serious first.
func (c *Claim) explain(ctx context.Context, resp *clientv3.TxnResponse) error {
	kvs := resp.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return lockLost("nobody holds it now")
	}
	if kvs[0].CreateRevision != c.lock.revision {
		return lockLost("now held by " + decodeHolder(kvs[0].Value).String())
	}
	sessions, err := milvus.Sessions(ctx, c.client, c.place.MetaRoot)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		return fault.Fail("claim.changed", "nothing was written").Because(ErrChanged)
	}
	names := make([]string, len(sessions))
	for i, s := range sessions {
		names[i] = s.String()
	}
	return fault.Fail("claim.session", "milvus is running: %s", strings.Join(names, "; ")).
		Hint("stop it, then apply the same plan again: it finishes what is left")
}

func (c *Claim) enterState(ctx context.Context) error {
	select {
	case c.state <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.state <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Claim) leaveState() { <-c.state }
