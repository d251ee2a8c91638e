package milvusfixture

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// Limits of one loading transaction; etcd's own are 128 operations and 1.5 MiB.
const (
	loadOps     = 100
	loadBytes   = 1 << 20
	loadAtATime = 8
)

// Load puts the instance into etcd and says how many keys it has.
func (s Spec) Load(ctx context.Context, client clientv3.KV) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loadAtATime)
	var batch []clientv3.Op
	size, keys := 0, 0
	flush := func() {
		ops := batch
		batch, size = nil, 0
		group.Go(func() error {
			_, err := client.Txn(ctx).Then(ops...).Commit()
			return err
		})
	}
	err := s.Each(func(key string, value []byte) error {
		if len(batch) == loadOps || size+len(key)+len(value) > loadBytes {
			flush()
		}
		batch = append(batch, clientv3.OpPut(key, string(value)))
		size, keys = size+len(key)+len(value), keys+1
		return ctx.Err()
	})
	flush()
	if waited := group.Wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return 0, fmt.Errorf("load a milvus into etcd: %w", err)
	}
	return keys, nil
}
