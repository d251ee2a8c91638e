package milvusfixture

import (
	"fmt"
	"math"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/msgpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/datapb"
	"google.golang.org/protobuf/encoding/protowire"
)

// segments come in a cycle of twenty: twelve flushed, three dropped, three L0, one
// that a compaction made, one without positions.
func (g *generator) segments() {
	for c := range g.Collections {
		for n := range g.SegmentsPerCollection {
			nth := c*g.SegmentsPerCollection + n
			g.segment(g.newSegment(g.collectionID(c), nth), nth)
		}
	}
	for i, variant := range []struct {
		on    bool
		state commonpb.SegmentState
	}{
		{g.Growing, commonpb.SegmentState_Growing},
		{g.Sealed, commonpb.SegmentState_Sealed},
		{g.Flushing, commonpb.SegmentState_Flushing},
		{g.Importing, commonpb.SegmentState_Importing},
	} {
		if !variant.on {
			continue
		}
		s := g.newSegment(g.collectionID(0), 0)
		s.ID, s.State = firstSeg-int64(i)-1, variant.state
		if variant.state == commonpb.SegmentState_Importing {
			s.IsImporting, s.StartPosition = true, nil
			s.DmlPosition = &msgpb.MsgPosition{ChannelName: s.InsertChannel, Timestamp: tsBase}
		}
		g.put(g.message(s), "datacoord-meta/s/%d/%d/%d", s.CollectionID, s.PartitionID, s.ID)
	}
}

func (g *generator) newSegment(collection int64, nth int) *datapb.SegmentInfo {
	channel := g.vchannel(collection, nth%shards)
	s := &datapb.SegmentInfo{
		ID: firstSeg + int64(nth), CollectionID: collection, PartitionID: g.partition(collection), InsertChannel: channel,
		NumOfRows: 1000 + int64(nth), State: commonpb.SegmentState_Flushed, Level: datapb.SegmentLevel_L1, StorageVersion: 2,
		StartPosition: position(g.wal(), int64(nth), channel), DmlPosition: position(g.wal(), int64(nth)+3, channel),
		IsSorted: true,
	}
	switch kind := nth % 20; {
	case kind < 12:
		s.TextStatsLogs = map[int64]*datapb.TextIndexStats{101: {FieldID: 101, Version: 1}, 102: {FieldID: 102, Version: 1}, 103: {FieldID: 103}}
	case kind < 15:
		s.State, s.DroppedAt, s.Compacted = commonpb.SegmentState_Dropped, tsBase+5, true
	case kind < 18:
		s.Level = datapb.SegmentLevel_L0
	case kind == 18:
		s.StartPosition = &msgpb.MsgPosition{ChannelName: channel, Timestamp: tsBase}
		s.DmlPosition = &msgpb.MsgPosition{ChannelName: channel, Timestamp: tsBase + 1}
		s.CreatedByCompaction, s.CompactionFrom = true, []int64{firstSeg, firstSeg + 1}
	default:
		s.StartPosition, s.DmlPosition = nil, nil
	}
	return s
}

// segment emits a segment and its logs. Every third carries fields of a newer
// Milvus, in itself and in its position.
func (g *generator) segment(s *datapb.SegmentInfo, nth int) {
	value := g.message(s)
	if nth%3 == 0 && s.DmlPosition != nil {
		s.DmlPosition.ProtoReflect().SetUnknown(unknownField(50, uint64(nth)))
		value = append(g.message(s), unknownField(31, 8)...)
	}
	g.put(value, "datacoord-meta/s/%d/%d/%d", s.CollectionID, s.PartitionID, s.ID)
	if nth >= 20 {
		return // the logs of twenty segments are enough to see that they survive
	}
	for _, kind := range []string{"binlog", "statslog", "deltalog"} {
		log := &datapb.FieldBinlog{FieldID: 100, Binlogs: []*datapb.Binlog{{EntriesNum: s.NumOfRows, LogID: s.ID*10 + 1, LogSize: 4096}}}
		g.put(g.message(log), "datacoord-meta/%s/%d/%d/%d/%d", kind, s.CollectionID, s.PartitionID, s.ID, 100)
	}
}

// checkpoints are where each virtual channel is consumed from.
func (g *generator) checkpoints() {
	for c := range g.Collections {
		for shard := range shards {
			v := g.vchannel(g.collectionID(c), shard)
			value := g.message(position(g.wal(), int64(c)+7, v))
			if c == 0 && shard == 0 {
				value = append(value, unknownField(50, 1)...)
			}
			g.put(value, "datacoord-meta/channel-cp/%s", v)
			g.put([]byte("non-removed"), "datacoord-meta/channel-removal/%s", v)
		}
	}
	gone := fmt.Sprintf("%s_%dv0", g.pchannel(0), goneColl)
	g.put(g.message(&msgpb.MsgPosition{ChannelName: gone, Timestamp: math.MaxUint64}), "datacoord-meta/channel-cp/%s", gone)
	g.put([]byte("removed"), "datacoord-meta/channel-removal/%s", gone)

	first := g.vchannel(g.collectionID(0), 0)
	g.put(g.message(&datapb.CompactionTask{PlanID: 1, TriggerID: 1, CollectionID: g.collectionID(0), Channel: first, Pos: position(g.wal(), 2, first)}),
		"datacoord-meta/compaction-task/mix/1")
	g.put(varints(1, 2, 3), "datacoord-meta/stats-task/1")
	if g.ChannelWatch {
		g.put(g.message(&datapb.ChannelWatchInfo{Vchan: &datapb.VchannelInfo{ChannelName: first, SeekPosition: position(g.wal(), 1, first)}}),
			"channelwatch/3/%s", first)
	}
}

func appendBytes(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}
