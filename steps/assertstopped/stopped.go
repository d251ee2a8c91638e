package assertstopped

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/milvus"
	"runbook/internal/step"
)

const (
	requestTimeout = 10 * time.Second
	sessionPoll    = 500 * time.Millisecond
	connectTimeout = 2 * time.Second
)

// checkStopped is the live check of milvusStopped: no waiting, no benefit of the doubt.
func checkStopped(ctx context.Context, env *step.Env, in Inputs) error {
	if err := instanceExists(ctx, env.Instance); err != nil {
		return err
	}
	sessions, err := listSessions(ctx, env.Instance)
	if err != nil {
		return err
	}
	if len(sessions) > 0 {
		return stillRunning(sessions, 0)
	}
	return nothingListens(ctx, in.HealthAddresses)
}

// instanceExists asks for proof that a Milvus lives under the root given: under
// a mistyped root nothing runs either, and everything would look stopped.
func instanceExists(ctx context.Context, in *instance.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := in.Etcd(ctx)
	if err != nil {
		return err
	}
	meta := in.Settings.MetaRoot()
	key := milvus.SessionIDKey(meta)
	resp, err := client.Get(ctx, key)
	if err != nil {
		return etcdDown(in, err)
	}
	if len(resp.Kvs) > 0 {
		return nil
	}
	refusal := fault.Refuse("stopped.no-instance", "no milvus has ever run under this root").At(key)
	roots, err := milvus.MetaRoots(ctx, client)
	switch {
	case err != nil: // a user confined to one prefix may not look around
		return refusal.Hint("set instance.etcd.rootPath and metaSubPath to those of this milvus")
	case len(roots) == 0:
		return refusal.Hint("set instance.etcd.endpoints to the etcd of this milvus: the one given holds no milvus at all")
	default:
		return refusal.Hint("set instance.etcd.rootPath and metaSubPath: this etcd holds %s", strings.Join(roots, ", "))
	}
}

// waitForSessions waits until no session is left, at most settle: the lease of a
// crashed process keeps its key for up to the lease time after the process is gone.
func waitForSessions(ctx context.Context, env *step.Env, settle time.Duration) (time.Duration, error) {
	start := env.Now()
	noted := false
	ticker := time.NewTicker(sessionPoll)
	defer ticker.Stop()
	for {
		sessions, err := listSessions(ctx, env.Instance)
		waited := env.Now().Sub(start)
		switch {
		case err != nil:
			return waited, err
		case len(sessions) == 0:
			return waited, nil
		case waited >= settle || !mayExpire(sessions, settle-waited):
			return waited, stillRunning(sessions, waited)
		case !noted:
			noted = true
			env.Report.Note("waiting up to %s for %d sessions to end: %s", settle, len(sessions), describe(sessions))
		}
		select {
		case <-ctx.Done():
			return waited, ctx.Err()
		case <-ticker.C:
		}
	}
}

// mayExpire reports whether waiting can help: every session has a lease, and one
// that nobody renews would run out in the time left.
func mayExpire(sessions []milvus.Session, left time.Duration) bool {
	for _, s := range sessions {
		if s.Lease == 0 || s.TTL > left {
			return false
		}
	}
	return true
}

func listSessions(ctx context.Context, in *instance.Instance) ([]milvus.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := in.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := milvus.Sessions(ctx, client, in.Settings.MetaRoot())
	if err != nil {
		return nil, etcdDown(in, err)
	}
	return sessions, nil
}

func stillRunning(sessions []milvus.Session, waited time.Duration) error {
	refusal := fault.Refuse("stopped.sessions", "milvus is running: %s", describe(sessions))
	if waited >= time.Second {
		refusal.Msg = fmt.Sprintf("milvus is still running after %s: %s", waited.Round(time.Second), describe(sessions))
	}
	for _, s := range sessions {
		if s.Lease == 0 {
			refusal.Hint("find out who wrote %s: it has no lease and stays for ever; if no such process runs, delete that key by hand", s.Key)
			break
		}
	}
	return refusal.Hint("stop every milvus process of this instance (cdc too), let it shut down gracefully, then apply again")
}

func describe(sessions []milvus.Session) string {
	names := make([]string, len(sessions))
	for i, s := range sessions {
		names[i] = s.String()
	}
	return strings.Join(names, "; ")
}

// nothingListens refuses when one of the addresses accepts a connection: a
// process that lost its lease is gone from etcd and may still write.
func nothingListens(ctx context.Context, addresses []string) error {
	for _, address := range addresses {
		dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
		conn, err := (&net.Dialer{}).DialContext(dialCtx, "tcp", address)
		cancel()
		if err == nil {
			conn.Close()
			return fault.Refuse("stopped.listening", "a process still listens here although etcd shows no session of it").At(address).
				Hint("stop that process, or remove the address from healthAddresses if it is not milvus")
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
