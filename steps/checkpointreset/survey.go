package checkpointreset

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"runbook/internal/fault"
	"runbook/internal/milvus"
	"runbook/internal/step"
)

// surveyAttempts is how often a reading starts over because etcd compacted the
// revision that it was reading: an etcd that others write to may do so any time.
const surveyAttempts = 3

// change is one key that a run touches.
type change struct {
	group string           // what people call its kind
	kv    *mvccpb.KeyValue // as read
	after []byte           // nil: the key is removed
}

// look reads the instance and decides nothing.
func look(ctx context.Context, env *step.Env, in Inputs) (*findings, error) {
	return survey(ctx, env, in, func(header) (func(change) error, error) {
		return func(change) error { return nil }, nil
	})
}

// survey reads everything that concerns positions at one revision and hands each
// key that a run would touch to the function that begin returns, in the order in
// which a run writes. A reading that has to start over calls begin again.
func survey(ctx context.Context, env *step.Env, in Inputs, begin func(header) (func(change) error, error)) (*findings, error) {
	client, err := env.Instance.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	target, err := targetOf(in)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		view, err := milvus.NewView(ctx, client, env.Instance.Settings.MetaRoot())
		if err != nil {
			return nil, err
		}
		found := newFindings(env, in, target, view.Revision)
		touch, err := begin(header{Format: imageFormat, Step: stepName, MetaRoot: found.meta, TargetWal: in.TargetWal, Revision: view.Revision})
		if err != nil {
			return nil, err
		}
		s := &surveyor{view: view, touch: touch, findings: found}
		switch err = s.read(ctx, env.Report); {
		case err == nil:
			return s.findings, nil
		case !errors.Is(err, milvus.ErrCompacted):
			return nil, err
		case attempt == surveyAttempts:
			return nil, fault.Fail("positions.compacted", "etcd dropped the state that was being read, %d times", attempt).
				Hint("make etcd keep more revisions (--auto-compaction-retention) for the time of this run, then apply the same plan again").Because(err)
		}
		env.Report.Note("etcd compacted the revision being read: reading again")
	}
}

func targetOf(in Inputs) (milvus.Position, error) {
	wal, err := milvus.ParseWAL(in.TargetWal)
	if err != nil {
		return milvus.Position{}, fault.BadUsage("positions.target", "targetWal: %s", err).Hint("name the WAL that milvus is to use")
	}
	return milvus.Earliest(wal)
}

// surveyor is one reading under way.
type surveyor struct {
	*findings
	view     milvus.View
	touch    func(change) error
	progress step.Progress
}

func (s *surveyor) read(ctx context.Context, report step.Reporter) error {
	total, err := s.total(ctx)
	if err != nil {
		return err
	}
	s.progress = report.Progress("reading stored positions", total)
	defer s.progress.Done()
	for _, part := range []func(context.Context) error{
		s.instance, s.surroundings, s.walDirectories,
		s.legacyCollections, s.collections, s.segments, s.channelCheckpoints, s.consumeCheckpoints,
		s.segmentAssignments, s.queryTargets, s.pinned,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// total is how many keys of the large families there are.
func (s *surveyor) total(ctx context.Context) (int64, error) {
	var total int64
	for _, family := range []milvus.Family{milvus.LegacyCollections, milvus.Collections, milvus.Segments, milvus.ChannelCheckpoints} {
		n, err := s.view.Count(ctx, family.Prefix(s.meta))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// instance looks for proof that this is a Milvus that a reset can be made of.
func (s *surveyor) instance(ctx context.Context) error {
	id, err := s.view.Get(ctx, milvus.SessionIDKey(s.meta))
	if err != nil {
		return err
	}
	s.proof = id != nil
	for kv, err := range s.view.Keys(ctx, milvus.PChannelMetas.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		if key, ok := s.key(milvus.PChannelMetas, kv); ok {
			s.pchannels = append(s.pchannels, key.PChannel)
		}
	}
	s.overrides, err = milvus.ReadOverrides(ctx, s.view, s.root)
	return err
}

// surroundings reads what is not rewritten but decides whether anything may be.
func (s *surveyor) surroundings(ctx context.Context) error {
	for kv, err := range s.view.Entries(ctx, milvus.Broadcasts.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		if _, ok := s.key(milvus.Broadcasts, kv); !ok {
			continue
		}
		state, err := milvus.ReadBroadcast(kv.Value)
		if err = s.readable(kv, err); err == nil && state != milvus.BroadcastTombstone {
			s.broadcasts.add("%s: %s", kv.Key, state)
		}
	}
	for kv, err := range s.view.Keys(ctx, milvus.ReplicatingPrefix(s.meta)) {
		if err != nil {
			return err
		}
		s.replicating.add("%s", kv.Key)
	}
	config, err := s.view.Get(ctx, milvus.ReplicateConfigurationKey(s.meta))
	if err != nil {
		return err
	}
	s.replicateConfig = config != nil
	if s.compactions, err = s.view.Count(ctx, milvus.CompactionTaskPrefix(s.meta)); err != nil {
		return err
	}
	s.watches, err = s.view.Count(ctx, milvus.ChannelWatchPrefix(s.meta))
	return err
}

// walDirectories finds what streaming nodes keep, by names alone: there are
// schemas among it that can be large.
func (s *surveyor) walDirectories(ctx context.Context) error {
	branches := map[string]bool{}
	assigned := map[string]bool{}
	for kv, err := range s.view.Keys(ctx, milvus.WALPrefix(s.meta)) {
		if err != nil {
			return err
		}
		pchannel, dir, known := milvus.ParseWALKey(s.meta, string(kv.Key))
		if !known {
			if place := milvus.WALPrefix(s.meta) + pchannel + "/" + dir; !branches[place] {
				branches[place] = true
				s.branches.add("%s", place)
			}
			continue
		}
		switch dir {
		case milvus.ConsumeCheckpointDir:
			if _, ok := s.key(milvus.ConsumeCheckpoints, kv); ok {
				s.checkpoints = append(s.checkpoints, string(kv.Key))
			}
		case milvus.SegmentAssignDir:
			assigned[pchannel] = true
		}
	}
	s.assignments = slices.Sorted(maps.Keys(assigned))
	return nil
}

// key parses a key; one that does not fit is unreadable.
func (s *surveyor) key(family milvus.Family, kv *mvccpb.KeyValue) (milvus.Key, bool) {
	key, err := family.ParseKey(s.meta, string(kv.Key))
	if err != nil {
		s.unreadable.add("%s: %s", kv.Key, err)
		return key, false
	}
	return key, true
}

// readable counts a value that could not be read and passes the error on, for the
// caller to skip the key.
func (s *surveyor) readable(kv *mvccpb.KeyValue, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, milvus.ErrTombstone):
		s.tombstones++
	default:
		s.unreadable.add("%s: %s", kv.Key, err)
	}
	return err
}
