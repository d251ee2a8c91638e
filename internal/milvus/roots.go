package milvus

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// rootDepth bounds how many levels {root}/{metaSubPath} may have: "org/by-dev/meta".
	rootDepth = 3
	// rootHops bounds the search in an etcd that holds much else.
	rootHops = 2000
)

// MetaRoots lists the meta roots ({root}/{metaSubPath}) that this etcd holds,
// found by their server id counters: for telling an operator who mistyped one
// what there is. It hops from name to name and never lists an instance's keys.
func MetaRoots(ctx context.Context, client *clientv3.Client) ([]string, error) {
	finder := rootFinder{kv: client, hops: rootHops}
	if err := finder.under(ctx, "", rootDepth); err != nil {
		return nil, fmt.Errorf("look for milvus roots: %w", err)
	}
	return finder.found, nil
}

type rootFinder struct {
	kv    clientv3.KV
	hops  int
	found []string
}

// under visits each name directly below prefix ("" or ending in a slash).
func (f *rootFinder) under(ctx context.Context, prefix string, depth int) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	if prefix == "" {
		from, end = "\x00", "\x00" // every key
	}
	for ; f.hops > 0; f.hops-- {
		resp, err := f.kv.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
		if err != nil {
			return err
		}
		if len(resp.Kvs) == 0 {
			return nil
		}
		key := string(resp.Kvs[0].Key)
		name, _, isDir := strings.Cut(key[len(prefix):], "/")
		if !isDir {
			from = key + "\x00"
			continue
		}
		dir := prefix + name
		if err := f.visit(ctx, dir, depth); err != nil {
			return err
		}
		from = dir + "0" // "0" follows "/": the first key after everything below dir
	}
	return nil
}

func (f *rootFinder) visit(ctx context.Context, dir string, depth int) error {
	resp, err := f.kv.Get(ctx, SessionIDKey(dir), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	if resp.Count > 0 {
		f.found = append(f.found, dir)
		return nil
	}
	if depth == 1 {
		return nil
	}
	return f.under(ctx, dir+"/", depth-1)
}
