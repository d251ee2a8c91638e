package checkpointreset

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"runbook/internal/milvus"
)

func (s *surveyor) legacyCollections(ctx context.Context) error {
	return s.eachCollection(ctx, milvus.LegacyCollections)
}

func (s *surveyor) collections(ctx context.Context) error {
	return s.eachCollection(ctx, milvus.Collections)
}

// eachCollection visits the plain keys only: what lies below snapshots/ is
// history that Milvus no longer reads.
func (s *surveyor) eachCollection(ctx context.Context, family milvus.Family) error {
	for kv, err := range s.view.Entries(ctx, family.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		s.progress.Add(1)
		key, ok := s.key(family, kv)
		if !ok {
			continue
		}
		collection, err := milvus.ReadCollection(kv.Value)
		if err == nil && collection.ID != key.Collection {
			err = fmt.Errorf("the value is of collection %d", collection.ID)
		}
		if s.readable(kv, err) != nil {
			continue
		}
		s.noteCollection(key, collection)
		switch {
		case len(collection.Channels) == 0:
			s.noPosition++
			continue
		case s.inScope != nil && !s.inScope[key.Collection]:
			continue
		}
		after, changed, err := s.target.RewriteCollection(kv.Value, s.scoped)
		if err := s.decide(milvus.Collections, kv, after, changed, err); err != nil {
			return err
		}
	}
	return nil
}

func (s *surveyor) noteCollection(key milvus.Key, collection milvus.Collection) {
	if key.Family == milvus.LegacyCollections {
		s.legacy[key.Collection] = true
	} else if s.legacy[key.Collection] {
		s.bothKeys.add("%d", key.Collection)
	}
	if s.inScope == nil {
		return
	}
	for _, channel := range collection.Channels {
		if s.scoped(channel) {
			s.inScope[key.Collection] = true
		}
	}
}

func (s *surveyor) segments(ctx context.Context) error {
	for kv, err := range s.view.Entries(ctx, milvus.Segments.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		s.progress.Add(1)
		key, ok := s.key(milvus.Segments, kv)
		if !ok {
			continue
		}
		segment, err := milvus.ReadSegment(kv.Value)
		if err == nil && (segment.ID != key.Segment || segment.Collection != key.Collection || segment.Partition != key.Partition) {
			err = fmt.Errorf("the value is of segment %d/%d/%d", segment.Collection, segment.Partition, segment.ID)
		}
		if s.readable(kv, err) != nil || !s.scoped(milvus.PhysicalChannel(segment.Channel)) {
			continue
		}
		if segment.State.Unflushed() {
			s.unflushed.add("%s: %s", kv.Key, segment.State)
		}
		if segment.Importing || segment.State == milvus.Importing {
			s.importing.add("%s", kv.Key)
		}
		if !segment.Positioned {
			s.noPosition++
			continue
		}
		after, changed, err := s.target.RewriteSegment(kv.Value)
		if err := s.decide(milvus.Segments, kv, after, changed, err); err != nil {
			return err
		}
	}
	return nil
}

func (s *surveyor) channelCheckpoints(ctx context.Context) error {
	for kv, err := range s.view.Entries(ctx, milvus.ChannelCheckpoints.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		s.progress.Add(1)
		key, ok := s.key(milvus.ChannelCheckpoints, kv)
		if !ok {
			continue
		}
		checkpoint, err := milvus.ReadChannelCheckpoint(kv.Value)
		if s.readable(kv, err) != nil {
			continue
		}
		if checkpoint.Dropped {
			s.dropped++
			continue
		}
		s.channels[checkpoint.WAL]++
		if !s.scoped(milvus.PhysicalChannel(key.VChannel)) {
			continue
		}
		after, changed, err := s.target.RewriteChannelCheckpoint(kv.Value)
		if err := s.decide(milvus.ChannelCheckpoints, kv, after, changed, err); err != nil {
			return err
		}
	}
	return nil
}

// consumeCheckpoints reads those that exist. A channel without one is not given
// any: Milvus opens it at the beginning of the WAL that mq.type names.
func (s *surveyor) consumeCheckpoints(ctx context.Context) error {
	seen := map[string]bool{}
	for _, name := range s.checkpoints {
		key, err := milvus.ConsumeCheckpoints.ParseKey(s.meta, name)
		if err != nil {
			return err
		}
		kv, err := s.view.Get(ctx, name)
		if err != nil {
			return err
		}
		seen[key.PChannel] = true
		if err := s.consumeCheckpoint(key.PChannel, kv); err != nil {
			return err
		}
	}
	s.compareChannels(seen)
	return nil
}

func (s *surveyor) consumeCheckpoint(pchannel string, kv *mvccpb.KeyValue) error {
	checkpoint, err := milvus.ReadConsumeCheckpoint(kv.Value)
	if s.readable(kv, err) != nil {
		return nil
	}
	s.consumes[checkpoint.WAL]++
	if checkpoint.Magic > milvus.KnownMagic {
		s.branches.add("%s: recovery_magic is %d", kv.Key, checkpoint.Magic)
	}
	for _, number := range checkpoint.Unknown {
		s.branches.add("%s: field %d", kv.Key, number)
	}
	if checkpoint.AlterWAL {
		s.alterWAL.add("%s", pchannel)
	}
	if !s.scoped(pchannel) {
		return nil
	}
	after, changed, err := s.target.RewriteConsumeCheckpoint(kv.Value)
	return s.decide(milvus.ConsumeCheckpoints, kv, after, changed, err)
}

// compareChannels holds the channels that streamingcoord lists against those that
// have a checkpoint, and both against the inputs.
func (s *surveyor) compareChannels(seen map[string]bool) {
	listed := map[string]bool{}
	for _, pchannel := range s.pchannels {
		listed[pchannel] = true
		if !seen[pchannel] {
			s.withoutCheckpoint = append(s.withoutCheckpoint, pchannel)
		}
	}
	for _, name := range s.checkpoints {
		if key, err := milvus.ConsumeCheckpoints.ParseKey(s.meta, name); err == nil && !listed[key.PChannel] {
			s.unlisted = append(s.unlisted, key.PChannel)
		}
	}
	for _, pchannel := range s.in.Pchannels {
		if !listed[pchannel] && !seen[pchannel] {
			s.unknownChannels = append(s.unknownChannels, pchannel)
		}
	}
}

// decide counts a key with a position and passes it on when it is to be rewritten.
func (s *surveyor) decide(family milvus.Family, kv *mvccpb.KeyValue, after []byte, changed bool, err error) error {
	if s.readable(kv, err) != nil {
		return nil
	}
	tally := s.rewrites[family]
	tally.found++
	if !changed {
		return nil
	}
	tally.changes.add("%s", kv.Key)
	return s.touch(change{group: family.String(), kv: kv, after: after})
}

// segmentAssignments are of no use after a switch: every segment that they speak
// of was flushed, or is given up knowingly.
func (s *surveyor) segmentAssignments(ctx context.Context) error {
	for _, pchannel := range s.assignments {
		if !s.scoped(pchannel) {
			continue
		}
		prefix := milvus.WALPrefix(s.meta) + pchannel + "/" + milvus.SegmentAssignDir + "/"
		for kv, err := range s.view.Entries(ctx, prefix) {
			if err != nil {
				return err
			}
			if err := s.remove(milvus.SegmentAssignments, kv); err != nil {
				return err
			}
		}
	}
	return nil
}

// queryTargets name positions to load up to. querycoord makes them anew. On the
// whole instance those of collections that are long gone go too.
func (s *surveyor) queryTargets(ctx context.Context) error {
	for kv, err := range s.view.Entries(ctx, milvus.QueryTargets.Prefix(s.meta)) {
		if err != nil {
			return err
		}
		if err := s.remove(milvus.QueryTargets, kv); err != nil {
			return err
		}
	}
	return nil
}

func (s *surveyor) remove(family milvus.Family, kv *mvccpb.KeyValue) error {
	key, ok := s.key(family, kv)
	if !ok || family == milvus.QueryTargets && s.inScope != nil && !s.inScope[key.Collection] {
		return nil
	}
	s.removed[family].add("%s", kv.Key)
	return s.touch(change{group: family.String(), kv: kv})
}

// pinned compares the setting that Milvus obeys with the target. A repair of some
// channels leaves it alone.
func (s *surveyor) pinned(ctx context.Context) error {
	s.pin = s.overrides.Pin(s.root)
	if s.pin == nil || len(s.in.Pchannels) > 0 || s.pin.Value == s.in.TargetWal {
		return nil
	}
	s.setPin = true
	return s.touch(change{
		group: pinGroup, after: []byte(s.in.TargetWal),
		kv: &mvccpb.KeyValue{Key: []byte(s.pin.Key), Value: []byte(s.pin.Value), ModRevision: s.pin.ModRevision},
	})
}
