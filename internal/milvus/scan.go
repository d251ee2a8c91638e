package milvus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// A page is about this large, however small its values are. For each page etcd
	// walks all that is left of the range, to count it: small pages make a long
	// reading quadratic.
	pageBytes = 4 << 20
	// firstPage and largestPage are numbers of keys.
	firstPage   = 1000
	largestPage = 32000

	requestTimeout = 30 * time.Second
)

// ErrCompacted says that etcd dropped the revision of a View while it was read.
// A new View starts over.
var ErrCompacted = errors.New("etcd compacted the revision being read")

// View reads etcd as it was at one revision, in as many requests as it takes,
// holding one page of a few MiB at a time.
type View struct {
	kv       clientv3.KV
	Revision int64
}

// NewView takes the current revision, by a linearizable read of a key below
// metaRoot: a user confined to one instance may read no other.
func NewView(ctx context.Context, kv clientv3.KV, metaRoot string) (View, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := kv.Get(ctx, SessionIDKey(metaRoot), clientv3.WithCountOnly())
	if err != nil {
		return View{}, fmt.Errorf("read etcd's revision: %w", err)
	}
	return View{kv: kv, Revision: resp.Header.Revision}, nil
}

// Entries walks the keys below prefix, which ends in a slash, in order. An error
// ends the walk.
func (v View) Entries(ctx context.Context, prefix string) iter.Seq2[*mvccpb.KeyValue, error] {
	return v.walk(ctx, prefix)
}

// Keys walks the keys below prefix without their values.
func (v View) Keys(ctx context.Context, prefix string) iter.Seq2[*mvccpb.KeyValue, error] {
	return v.walk(ctx, prefix, clientv3.WithKeysOnly())
}

// Count says how many keys there are below prefix.
func (v View) Count(ctx context.Context, prefix string) (int64, error) {
	resp, err := v.get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return resp.Count, nil
}

// Get reads one key; nil when it does not exist.
func (v View) Get(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	resp, err := v.get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	return resp.Kvs[0], nil
}

func (v View) walk(ctx context.Context, prefix string, opts ...clientv3.OpOption) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		end := clientv3.GetPrefixRangeEnd(prefix)
		limit := int64(firstPage)
		for from := prefix; ; {
			resp, err := v.get(ctx, from, append(opts, clientv3.WithRange(end), clientv3.WithLimit(limit))...)
			if status.Code(err) == codes.ResourceExhausted && limit > 1 {
				limit /= 2 // the page did not fit into one reply
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, kv := range resp.Kvs {
				if !yield(kv, nil) {
					return
				}
			}
			if !resp.More {
				return
			}
			limit = nextPage(limit, resp.Kvs)
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		}
	}
}

// nextPage aims at pageBytes with what the page before it weighed.
func nextPage(limit int64, page []*mvccpb.KeyValue) int64 {
	bytes := 0
	for _, kv := range page {
		bytes += len(kv.Key) + len(kv.Value)
	}
	switch {
	case bytes < pageBytes/2:
		return min(2*limit, largestPage)
	case bytes > 2*pageBytes:
		return max(limit/2, 1)
	}
	return limit
}

func (v View) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := v.kv.Get(ctx, key, append(opts, clientv3.WithRev(v.Revision))...)
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil, ErrCompacted
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return resp, nil
}
