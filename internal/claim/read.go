package claim

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// readTimeout bounds Read, which an operator waits for when etcd is down.
const readTimeout = 10 * time.Second

// Read tells what a run left half done and who holds the instance now; each is
// nil when there is none. It only reads, and takes part in no claim.
func Read(ctx context.Context, client *clientv3.Client, root string) (*Marker, *Holder, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	resp, err := client.Txn(ctx).Then(clientv3.OpGet(MarkerKey(root)), clientv3.OpGet(LockKey(root))).Commit()
	if err != nil {
		return nil, nil, fmt.Errorf("read %s and %s: %w", MarkerKey(root), LockKey(root), err)
	}
	var marker *Marker
	if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		marker = decodeMarker(kvs[0].Value)
	}
	kvs := resp.Responses[1].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return marker, nil, nil
	}
	holder := decodeHolder(kvs[0].Value)
	holder.lease = kvs[0].Lease
	holder.TTL, err = leaseLeft(ctx, client, holder.lease)
	if err != nil {
		return nil, nil, fmt.Errorf("time left of the lock %s: %w", LockKey(root), err)
	}
	return marker, &holder, nil
}
