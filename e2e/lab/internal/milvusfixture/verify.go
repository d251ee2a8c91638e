package milvusfixture

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const verifyPage = 10000 // etcd counts the rest of the range for each page

// Verify reads the instance back and lists what a reset to target did wrong;
// "" stands for no reset at all, when every key must be as loaded. Keys that the
// instance never had are listed too, but for those below {root}/runbook/ and
// woodpecker's.
func (s Spec) Verify(ctx context.Context, client clientv3.KV, target string) ([]string, error) {
	now, err := readAll(ctx, client, s.Root+"/")
	if err != nil {
		return nil, err
	}
	var wrong []string
	err = s.Each(func(key string, before []byte) error {
		after, present := now[key]
		delete(now, key)
		fate := Kept
		if target != "" {
			fate = s.FateOf(key, before)
		}
		if problem := s.check(key, before, after, present, fate, target); problem != "" {
			wrong = append(wrong, problem)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for key := range now {
		if !bytes.HasPrefix([]byte(key), []byte(s.Root+"/runbook/")) && !bytes.HasPrefix([]byte(key), []byte(s.Root+"/woodpecker/")) {
			wrong = append(wrong, key+": was not there before")
		}
	}
	return wrong, nil
}

func (s Spec) check(key string, before, after []byte, present bool, fate Fate, target string) string {
	switch {
	case fate == Removed && present:
		return key + ": still there"
	case fate == Removed:
		return ""
	case !present:
		return key + ": gone"
	case fate == Kept && !bytes.Equal(before, after):
		return fmt.Sprintf("%s: changed from %x to %x", key, before, after)
	case fate == Rewritten:
		if err := s.CheckRewritten(key, before, after, target); err != nil {
			return err.Error()
		}
	}
	return ""
}

func readAll(ctx context.Context, client clientv3.KV, prefix string) (map[string][]byte, error) {
	all := map[string][]byte{}
	end, revision := clientv3.GetPrefixRangeEnd(prefix), int64(0)
	for from := prefix; ; {
		resp, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(verifyPage), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		revision = resp.Header.Revision
		for _, kv := range resp.Kvs {
			all[string(kv.Key)] = kv.Value
		}
		if !resp.More {
			return all, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
