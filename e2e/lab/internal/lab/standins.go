package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/standin"
	"runbook/e2e/lab/internal/state"
)

// standIns run for as long as the lab does, one a root.
type standIns struct {
	lab *state.Lab

	mu   sync.Mutex
	live map[string]*liveStandIn
}

type liveStandIn struct {
	*standin.StandIn
	client *seed.Client
	seeder *seed.Seeder
}

func newStandIns(lab *state.Lab) *standIns {
	return &standIns{lab: lab, live: map[string]*liveStandIn{}}
}

func (s *standIns) start(ctx context.Context, req control.StandIn) (health string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[req.Root] != nil {
		return "", fmt.Errorf("a stand-in runs for %s already", req.Root)
	}
	// It outlives the request that started it.
	ctx = context.WithoutCancel(ctx)
	l := &liveStandIn{}
	quiet := func(string, ...any) {}
	if l.seeder, err = seed.New(ctx, s.lab, seed.Target{Instance: req.Instance, StorageType: seed.StorageService}, quiet); err != nil {
		return "", err
	}
	if l.client, err = l.seeder.OpenClient(ctx); err != nil {
		return "", errors.Join(err, l.seeder.Close())
	}
	l.StandIn, err = standin.Start(ctx, l.seeder.Etcd(), l.client, standin.Options{Root: req.Root, Stall: req.Stall})
	if err != nil {
		return "", errors.Join(err, l.client.Close(ctx), l.seeder.Close())
	}
	s.live[req.Root] = l
	return l.Health, nil
}

func (s *standIns) stop(ctx context.Context, root string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[root]
	if l == nil {
		return fmt.Errorf("no stand-in runs for %s", root)
	}
	delete(s.live, root)
	ctx = context.WithoutCancel(ctx)
	return errors.Join(l.Stop(ctx), l.client.Close(ctx), l.seeder.Close())
}

func (s *standIns) close() error {
	s.mu.Lock()
	var roots []string
	for root := range s.live {
		roots = append(roots, root)
	}
	s.mu.Unlock()
	var errs []error
	for _, root := range roots {
		errs = append(errs, s.stop(context.Background(), root))
	}
	return errors.Join(errs...)
}
