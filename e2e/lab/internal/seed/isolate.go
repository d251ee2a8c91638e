package seed

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/layout"
)

// scratch is where metadata is written while a legacy instance is in the way.
const scratch = "runbook-lab-scratch/"

// withMetadata calls do with an etcd client through which a woodpecker client
// really works at the target's prefix. Where an instance at the legacy prefix
// exists, any woodpecker client would silently work on that one; then do gets a
// view of etcd that holds only the target's keys, and those are copied back.
func (s *Seeder) withMetadata(ctx context.Context, do func(*clientv3.Client) error) error {
	prefix := s.target.EtcdPrefix()
	if prefix == layout.LegacyPrefix {
		return do(s.etcd)
	}
	legacy, err := s.etcd.Get(ctx, layout.LegacyPrefix+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	if legacy.Count == 0 {
		return do(s.etcd)
	}
	s.say("legacy metadata exists: writing aside and moving to %s", prefix)
	view, err := access.Etcd(ctx, s.lab)
	if err != nil {
		return err
	}
	defer view.Close()
	view.KV = namespace.NewKV(view.KV, scratch)
	view.Lease = namespace.NewLease(view.Lease, scratch)
	view.Watcher = namespace.NewWatcher(view.Watcher, scratch)
	if err := s.replaceKeys(ctx, prefix+"/", scratch+prefix+"/"); err != nil {
		return err
	}
	if err := do(view); err != nil {
		return err
	}
	if err := s.replaceKeys(ctx, scratch+prefix+"/", prefix+"/"); err != nil {
		return err
	}
	_, err = s.etcd.Delete(ctx, scratch, clientv3.WithPrefix())
	return err
}

// replaceKeys makes the keys below to equal to those below from, touching only
// what differs.
func (s *Seeder) replaceKeys(ctx context.Context, from, to string) error {
	want, err := s.etcd.Get(ctx, from, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	have, err := s.etcd.Get(ctx, to, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	old := map[string]string{}
	for _, kv := range have.Kvs {
		old[string(kv.Key)] = string(kv.Value)
	}
	var ops []clientv3.Op
	for _, kv := range want.Kvs {
		key := to + strings.TrimPrefix(string(kv.Key), from)
		if value, ok := old[key]; !ok || value != string(kv.Value) {
			ops = append(ops, clientv3.OpPut(key, string(kv.Value)))
		}
		delete(old, key)
	}
	for key := range old {
		ops = append(ops, clientv3.OpDelete(key))
	}
	return s.commit(ctx, ops)
}

// commit applies ops in transactions that etcd accepts.
func (s *Seeder) commit(ctx context.Context, ops []clientv3.Op) error {
	const atOnce = 128
	for len(ops) > 0 {
		n := min(atOnce, len(ops))
		if _, err := s.etcd.Txn(ctx).Then(ops[:n]...).Commit(); err != nil {
			return fmt.Errorf("etcd: %w", err)
		}
		ops = ops[n:]
	}
	return nil
}
