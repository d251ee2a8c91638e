package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
)

const (
	// lockTTL is how long a lock outlives a holder that is cut off; a hiccup of
	// etcd that is shorter goes unnoticed.
	lockTTL = 30 * time.Second
	// requestTimeout bounds one attempt of one request about the lock or the marker.
	requestTimeout = 5 * time.Second
	// takeAttempts bounds how many dead holders are cleared away in one Take.
	takeAttempts = 3
)

// lock is the lock as this run holds it.
type lock struct {
	lease    clientv3.LeaseID
	revision int64 // create revision of the key
	stop     context.CancelFunc
	stopped  chan struct{} // closed when the lease is no longer kept alive
}

// held compares true while the key is the one that this run created.
func (l *lock) held(p Place) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(p.lockKey()), "=", l.revision),
		clientv3.Compare(clientv3.LeaseValue(p.lockKey()), "=", l.lease),
	}
}

// Options of Take.
type Options struct {
	// TTL of the lock, whole seconds; 0: thirty of them.
	TTL time.Duration
	// Lost is called once, from another goroutine, when the lease could not be
	// kept alive for a whole TTL. Another run may hold the lock from then on, so
	// whatever is under way must end at once. It is not called after Release.
	Lost func(error)
}

// Take locks the instance. When another run holds it the error is a *fault.Error
// of kind Locked that says who. A holder that is provably dead (a process of this
// machine that is no longer there) is not waited for.
func Take(ctx context.Context, client *clientv3.Client, place Place, owner Owner, opts Options) (*Claim, error) {
	ttl := opts.TTL
	if ttl == 0 {
		ttl = lockTTL
	}
	lease, err := grant(ctx, client, ttl)
	if err != nil {
		return nil, err
	}
	c := &Claim{client: client, place: place, owner: owner, state: make(chan struct{}, 1)}
	c.lock.lease = lease
	if err := c.create(ctx); err != nil {
		revoke(ctx, client, lease)
		return nil, err
	}
	failpoint.Hit("claim/lock-taken")
	if err := c.keep(ctx, ttl, opts.Lost); err != nil {
		revoke(ctx, client, lease)
		return nil, err
	}
	return c, nil
}

func grant(ctx context.Context, client *clientv3.Client, ttl time.Duration) (clientv3.LeaseID, error) {
	var lease clientv3.LeaseID
	err := patience().Do(ctx, func(ctx context.Context) error {
		resp, err := client.Grant(ctx, int64(ttl/time.Second))
		if err == nil {
			lease = resp.ID
		}
		return err
	})
	if err != nil {
		return clientv3.NoLease, lockUnavailable(client, err)
	}
	return lease, nil
}

func lockUnavailable(client *clientv3.Client, err error) error {
	return fault.Refuse("claim.etcd", "the lock cannot be taken").At(strings.Join(client.Endpoints(), ",")).Because(err).
		Hint("check that etcd has a leader and that the user in instance.etcd may write under {rootPath}/runbook/")
}

// create puts the key unless somebody holds it.
func (c *Claim) create(ctx context.Context) error {
	for range takeAttempts {
		var holder *Holder
		err := patience().Do(ctx, func(ctx context.Context) error {
			var err error
			holder, err = c.tryCreate(ctx)
			return err
		})
		if err != nil {
			return lockUnavailable(c.client, err)
		}
		if holder == nil {
			return nil
		}
		if !holder.Gone() {
			return holder.Locked()
		}
		// The lease is that of the dead process, so this cannot hurt a new holder.
		revoke(ctx, c.client, clientv3.LeaseID(holder.lease))
	}
	return &fault.Error{Kind: fault.Locked, Code: "claim.locked", Where: c.place.lockKey(),
		Msg: "several other runs compete for the lock", Hints: []string{"find out who applies plans to this instance, then apply again"}}
}

// tryCreate returns the holder when it is somebody else.
func (c *Claim) tryCreate(ctx context.Context) (*Holder, error) {
	key := c.place.lockKey()
	resp, err := c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, c.holder().encode(), clientv3.WithLease(c.lock.lease))).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, err
	}
	if resp.Succeeded {
		c.lock.revision = resp.Header.Revision
		return nil, nil
	}
	kv := resp.Responses[0].GetResponseRange().Kvs[0]
	if kv.Lease == int64(c.lock.lease) { // an attempt whose answer was lost
		c.lock.revision = kv.CreateRevision
		return nil, nil
	}
	holder := decodeHolder(kv.Value)
	holder.lease = kv.Lease
	holder.TTL, err = leaseLeft(ctx, c.client, kv.Lease)
	return &holder, err
}

func (c *Claim) holder() Holder {
	return Holder{Owner: c.owner, Step: c.stage.Step, Process: thisProcess()}
}

// Locked is the refusal that a held lock means for another run.
func (h Holder) Locked() error {
	e := &fault.Error{Kind: fault.Locked, Code: "claim.locked", Msg: "another run holds the lock: " + h.String()}
	e.Hint("wait for that run to end; `runbook inspect` shows how far it is")
	if h.TTL > 0 {
		e.Hint("if that process is gone, wait %s and apply again: the lock then ends by itself", h.TTL.Round(time.Second))
	}
	return e
}

// keep renews the lease until Release, or until it could not be for a whole TTL.
func (c *Claim) keep(ctx context.Context, ttl time.Duration, lost func(error)) error {
	// A stop of the run must not end the lock before Release does.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	renewals, err := c.client.KeepAlive(alive, c.lock.lease)
	if err != nil {
		stop()
		return lockUnavailable(c.client, err)
	}
	c.lock.stop, c.lock.stopped = stop, make(chan struct{})
	go func() {
		defer close(c.lock.stopped)
		for range renewals {
		}
		if alive.Err() == nil && lost != nil {
			lost(lockLost(fmt.Sprintf("etcd could not be reached to renew it for %s", ttl)))
		}
	}()
	return nil
}

func lockLost(why string) error {
	return fault.Fail("claim.lock-lost", "the lock of this run is lost: %s", why).
		Hint("see that no other run works on this instance, then apply the same plan again: it finishes what is left")
}

// Release gives the lock back. An error means that the lock stays until its
// lease runs out, which is worth a warning and nothing more.
func (c *Claim) Release(ctx context.Context) error {
	c.lock.stop()
	<-c.lock.stopped
	if err := revoke(ctx, c.client, c.lock.lease); err != nil {
		return fmt.Errorf("the lock stays for up to %s: %w", lockTTL, err)
	}
	failpoint.Hit("claim/lock-released")
	return nil
}

// revoke also works for a run that was told to stop.
func revoke(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(interrupt.Unit(ctx)), requestTimeout)
	defer cancel()
	_, err := client.Revoke(ctx, lease)
	return err
}

func leaseLeft(ctx context.Context, client *clientv3.Client, lease int64) (time.Duration, error) {
	if lease == 0 {
		return 0, nil
	}
	resp, err := client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return 0, err
	}
	return max(0, time.Duration(resp.TTL)*time.Second), nil
}
