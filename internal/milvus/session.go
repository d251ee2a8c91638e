package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Session is one entry under {meta}/session/: a Milvus process that is running,
// or that stopped less than a lease time ago.
//
// Source: Milvus 2.6 and 3.0, session_util.go. A role's key is "{role}-{serverID}",
// an exclusive coordinator's is "{role}".
type Session struct {
	Key      string        // full etcd key
	Role     string        // mixcoord, proxy, querynode, datanode, streamingnode, cdc, ...
	ServerID int64         // 0 when the value could not be decoded
	Address  string        // host:port the process serves on
	HostName string        // pod or machine name
	Stopping bool          // a graceful stop is under way; data may still be flushed
	Lease    int64         // etcd lease id; 0 means the key never expires by itself
	TTL      time.Duration // time left on the lease; negative when it has expired
}

// String names the session the way an operator looks for it.
func (s Session) String() string {
	text := fmt.Sprintf("%s %d at %s", s.Role, s.ServerID, s.Address)
	if s.HostName != "" {
		text += " (" + s.HostName + ")"
	}
	switch {
	case s.Lease == 0:
		text += ", no lease: it never expires by itself"
	case s.TTL < 0:
		text += ", lease expired"
	default:
		text += fmt.Sprintf(", lease ends in %s unless kept alive", s.TTL.Round(time.Second))
	}
	if s.Stopping {
		text += ", stopping"
	}
	return text
}

// permanentSessionKeys live under {meta}/session/ for ever and are no session:
// the server id counter, and the lowest version that may still start.
var permanentSessionKeys = []string{"id", "version"}

// sessionPrefix is where sessions live; it ends in a slash, so "session-x" never matches.
func sessionPrefix(metaRoot string) string { return metaRoot + "/session/" }

// SessionIDKey holds the server id counter: its presence proves that a Milvus
// has used this root at least once.
func SessionIDKey(metaRoot string) string { return sessionPrefix(metaRoot) + "id" }

// NoSession compares true when no session exists under metaRoot, in the same
// transaction as the write that it protects. Three ranges leave out the two
// permanent keys; an empty range compares as a key that was never created.
func NoSession(metaRoot string) []clientv3.Cmp {
	prefix := sessionPrefix(metaRoot)
	id, version := prefix+permanentSessionKeys[0], prefix+permanentSessionKeys[1]
	absent := func(from, to string) clientv3.Cmp {
		return clientv3.Compare(clientv3.CreateRevision(from), "=", 0).WithRange(to)
	}
	return []clientv3.Cmp{
		absent(prefix, id),
		absent(id+"\x00", version),
		absent(version+"\x00", clientv3.GetPrefixRangeEnd(prefix)),
	}
}

// Sessions lists what runs, by a linearizable read. A value that cannot be
// decoded still counts: whatever wrote it may be alive.
func Sessions(ctx context.Context, client *clientv3.Client, metaRoot string) ([]Session, error) {
	prefix := sessionPrefix(metaRoot)
	resp, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list sessions under %s: %w", prefix, err)
	}
	var sessions []Session
	for _, kv := range resp.Kvs {
		name := strings.TrimPrefix(string(kv.Key), prefix)
		if name == permanentSessionKeys[0] || name == permanentSessionKeys[1] {
			continue
		}
		session := decodeSession(name, kv.Value)
		session.Key, session.Lease = string(kv.Key), kv.Lease
		if session.TTL, err = leaseLeft(ctx, client, kv.Lease); err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	return sessions, nil
}

func decodeSession(name string, value []byte) Session {
	var raw struct {
		ServerID   int64  `json:"ServerID"`
		ServerName string `json:"ServerName"`
		Address    string `json:"Address"`
		HostName   string `json:"HostName"`
		Stopping   bool   `json:"Stopping"`
	}
	// The field set differs by version and a broken value is still a session.
	_ = json.Unmarshal(value, &raw)
	if raw.ServerName == "" {
		raw.ServerName = name
	}
	return Session{Role: raw.ServerName, ServerID: raw.ServerID, Address: raw.Address, HostName: raw.HostName, Stopping: raw.Stopping}
}

func leaseLeft(ctx context.Context, client *clientv3.Client, lease int64) (time.Duration, error) {
	if lease == 0 {
		return 0, nil
	}
	resp, err := client.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return 0, fmt.Errorf("time left of lease %x: %w", lease, err)
	}
	return time.Duration(resp.TTL) * time.Second, nil
}
