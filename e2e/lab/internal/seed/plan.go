package seed

import (
	"context"
	"fmt"

	"runbook/e2e/lab/internal/milvusfixture"
)

// Plan is all that one `seed` does, in the order in which it is done.
type Plan struct {
	WAL        *WAL // nil: write no logs
	BucketLock bool
	Milvus     []milvusfixture.Spec

	Parked         int
	OrphanObjects  int
	OrphanNodeDirs []int64
	OnNodes        []int
	Foreign        bool

	// Damage comes last: the real client refuses to work on some of it.
	NoQuorum         int
	Counter          *int64
	DropInstanceKeys []string
}

// Run does what the plan says.
func (s *Seeder) Run(ctx context.Context, p Plan) error {
	if err := s.EnsureBucket(ctx, p.BucketLock); err != nil {
		return err
	}
	steps := []struct {
		wanted bool
		what   string
		do     func() error
	}{
		{p.WAL != nil, "logs", func() error { return s.WriteWAL(ctx, *p.WAL) }},
		{len(p.Milvus) > 0, "milvus metadata", func() error { return s.writeMilvus(ctx, p.Milvus) }},
		{p.Parked > 0, "parked logs", func() error { return s.park(ctx, p.Parked) }},
		{p.WAL != nil || p.Parked > 0, "object names", func() error { return s.moveToVerbatimRoot(ctx) }},
		{p.OrphanObjects > 0, "orphan objects", func() error { return s.orphanObjects(ctx, p.OrphanObjects) }},
		{len(p.OrphanNodeDirs) > 0, "orphan node directories", func() error { return s.orphanNodeDirs(p.OrphanNodeDirs, p.OnNodes) }},
		{p.Foreign, "foreign objects", func() error { return s.foreign(ctx) }},
		{p.NoQuorum > 0, "segments without quorum", func() error { return s.stripQuorum(ctx, p.NoQuorum) }},
		{p.Counter != nil, "log id counter", func() error { return s.setCounter(ctx, *p.Counter) }},
		{len(p.DropInstanceKeys) > 0, "instance keys", func() error { return s.dropInstanceKeys(ctx, p.DropInstanceKeys) }},
	}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}
