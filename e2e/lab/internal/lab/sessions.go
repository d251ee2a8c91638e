package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/milvus"
	"runbook/e2e/lab/internal/state"
)

// sessions keeps Milvus sessions alive for as long as the lab runs.
type sessions struct {
	lab *state.Lab

	mu     sync.Mutex
	client *clientv3.Client // opened by the first session
	live   map[string]*liveSession
}

type liveSession struct {
	lease  clientv3.LeaseID
	cancel context.CancelFunc
	ended  chan struct{}
}

func newSessions(lab *state.Lab) *sessions {
	return &sessions{lab: lab, live: map[string]*liveSession{}}
}

func (s *sessions) start(ctx context.Context, req control.Session) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := milvus.SessionKey(req.Root, req.Role, req.ID)
	if s.live[key] != nil {
		return "", fmt.Errorf("session %s is already kept alive", key)
	}
	if s.client == nil {
		client, err := access.Etcd(context.WithoutCancel(ctx), s.lab)
		if err != nil {
			return "", err
		}
		s.client = client
	}
	if req.NoLease {
		value, err := milvus.SessionValue(req.Role, req.ID, 0)
		if err != nil {
			return "", err
		}
		_, err = s.client.Put(ctx, key, value)
		return key, err
	}
	return key, s.keepAlive(ctx, key, req)
}

func (s *sessions) keepAlive(ctx context.Context, key string, req control.Session) error {
	ttl := int64((req.TTL + time.Second - 1) / time.Second)
	lease, err := s.client.Grant(ctx, ttl)
	if err != nil {
		return err
	}
	value, err := milvus.SessionValue(req.Role, req.ID, int64(lease.ID))
	if err != nil {
		return err
	}
	if _, err := s.client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
		return err
	}
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answers, err := s.client.KeepAlive(alive, lease.ID)
	if err != nil {
		cancel()
		return err
	}
	live := &liveSession{lease: lease.ID, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(live.ended)
		for range answers { // the client wants its answers read
		}
	}()
	s.live[key] = live
	return nil
}

// stop revokes the lease, or deletes the key of a session without one; an
// abandoned session stays until its lease ends.
func (s *sessions) stop(ctx context.Context, req control.Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return errors.New("no session was started")
	}
	key := milvus.SessionKey(req.Root, req.Role, req.ID)
	live := s.live[key]
	if live == nil {
		resp, err := s.client.Delete(ctx, key)
		if err == nil && resp.Deleted == 0 {
			err = fmt.Errorf("no session %s", key)
		}
		return err
	}
	delete(s.live, key)
	live.cancel()
	<-live.ended
	if req.Abandon {
		return nil
	}
	_, err := s.client.Revoke(ctx, live.lease)
	return err
}

// close stops keeping sessions alive; etcd goes down with them.
func (s *sessions) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, live := range s.live {
		live.cancel()
	}
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}
