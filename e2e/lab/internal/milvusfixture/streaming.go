package milvusfixture

import (
	"fmt"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus/pkg/v2/proto/messagespb"
	"github.com/milvus-io/milvus/pkg/v2/proto/streamingpb"
)

// streaming is what streamingcoord and the streaming nodes keep.
func (g *generator) streaming() {
	g.put(g.message(&streamingpb.StreamingVersion{Version: 1}), "streamingcoord-meta/version")
	g.put(g.message(&streamingpb.CChannelMeta{Pchannel: g.pchannel(0)}), "streamingcoord-meta/cchannel")
	for n := range g.Pchannels {
		p := g.pchannel(n)
		if !g.NoChannels {
			g.put(g.message(&streamingpb.PChannelMeta{
				Channel: &streamingpb.PChannelInfo{Name: p, Term: 3, AccessMode: streamingpb.PChannelAccessMode_PCHANNEL_ACCESS_READWRITE},
				Node:    &streamingpb.StreamingNodeInfo{ServerId: 3, Address: "127.0.0.1:22222"},
				State:   streamingpb.PChannelMetaState_PCHANNEL_META_STATE_ASSIGNED,
			}), "streamingcoord-meta/pchannel/%s", p)
		}
		if n < g.Pchannels-1 || !g.MissingCheckpoint {
			g.put(g.consumeCheckpoint(n), "streamingnode-meta/wal/%s/consume-checkpoint", p)
		}
		g.put(g.message(&streamingpb.SegmentAssignmentMeta{
			CollectionId: g.collectionID(0), PartitionId: g.partition(g.collectionID(0)), SegmentId: firstSeg + int64(n), Vchannel: g.vchannel(g.collectionID(0), n%shards),
			State: streamingpb.SegmentAssignmentState_SEGMENT_ASSIGNMENT_STATE_FLUSHED, CheckpointTimeTick: tsBase,
		}), "streamingnode-meta/wal/%s/segment-assign/%d", p, firstSeg+n)
	}
	g.virtualChannels()
	if g.Pchannels <= 10 { // a channel 10 that streamingcoord does not list; its name begins like that of channel 1
		g.put(g.message(&streamingpb.WALCheckpoint{MessageId: messageID(g.wal(), 1), TimeTick: tsBase, RecoveryMagic: 1}),
			"streamingnode-meta/wal/%s0/consume-checkpoint", g.pchannel(1))
	}
	g.broadcasts()
	g.replication()
	if g.NewerDirectory {
		g.put(varints(1), "streamingnode-meta/wal/%s/recovery-control/1", g.pchannel(0))
	}
}

// consumeCheckpoint of channel 0 has a pending online switch (field 6, which these
// messages do not have), that of channel 1 is a replica's.
func (g *generator) consumeCheckpoint(n int) []byte {
	c := &streamingpb.WALCheckpoint{MessageId: messageID(g.wal(), int64(n)+20), TimeTick: tsBase + uint64(n), RecoveryMagic: 1}
	switch n {
	case 0:
		alterWAL := varints(uint64(commonpb.WALName_WoodPecker), absent, tsBase, 1)
		return appendBytes(g.message(c), 6, alterWAL)
	case 1:
		c.ReplicateCheckpoint = &commonpb.ReplicateCheckpoint{ClusterId: "other", Pchannel: "other-dml_1", MessageId: messageID(g.wal(), 99), TimeTick: tsBase}
		if g.Magic2 {
			c.RecoveryMagic = 2
		}
		if g.CheckpointField7 {
			return append(g.message(c), unknownField(7, 42)...)
		}
	}
	return g.message(c)
}

func (g *generator) virtualChannels() {
	for c := range g.Collections {
		for shard := range shards {
			id := g.collectionID(c)
			p, v := g.pchannel(g.firstShard(id)+shard), g.vchannel(id, shard)
			g.put(g.message(&streamingpb.VChannelMeta{
				Vchannel: v, State: streamingpb.VChannelState_VCHANNEL_STATE_NORMAL, CheckpointTimeTick: tsBase,
				CollectionInfo: &streamingpb.CollectionInfoOfVChannel{CollectionId: id, Partitions: []*streamingpb.PartitionInfoOfVChannel{{PartitionId: g.partition(id)}}},
			}), "streamingnode-meta/wal/%s/vchannel/%s", p, v)
			g.put(g.message(&streamingpb.CollectionSchemaOfVChannel{
				Schema: &schemapb.CollectionSchema{Name: fmt.Sprintf("collection%d", c)}, CheckpointTimeTick: tsBase,
				State: streamingpb.VChannelSchemaState_VCHANNEL_SCHEMA_STATE_NORMAL,
			}), "streamingnode-meta/wal/%s/vchannel/%s/schema/%d", p, v, uint64(tsBase))
		}
	}
	control := g.pchannel(0) + "_vcchan"
	g.put(g.message(&streamingpb.VChannelMeta{Vchannel: control, State: streamingpb.VChannelState_VCHANNEL_STATE_NORMAL}),
		"streamingnode-meta/wal/%s/vchannel/%s", g.pchannel(0), control)
	g.put(g.message(&commonpb.ReplicateCheckpoint{ClusterId: "other", Pchannel: "p", MessageId: messageID(g.wal(), 5)}),
		"streamingnode-meta/wal/%s/salvage-checkpoint/other", g.pchannel(0))
}

func (g *generator) broadcasts() {
	for id := range int64(2) {
		g.put(g.message(g.broadcast(streamingpb.BroadcastTaskState_BROADCAST_TASK_STATE_TOMBSTONE)), "streamingcoord-meta/broadcast-task/%d", tsBase+id)
	}
	if g.BroadcastPending {
		g.put(g.message(g.broadcast(streamingpb.BroadcastTaskState_BROADCAST_TASK_STATE_PENDING)), "streamingcoord-meta/broadcast-task/%d", int64(tsBase+9))
	}
}

func (g *generator) broadcast(state streamingpb.BroadcastTaskState) *streamingpb.BroadcastTask {
	return &streamingpb.BroadcastTask{
		Message: &messagespb.Message{Payload: []byte("ddl"), Properties: map[string]string{"_t": "1", "_v": "2", "_bh": "x"}}, State: state,
		AckedCheckpoints: []*streamingpb.AckedCheckpoint{{MessageId: messageID(g.wal(), 3), LastConfirmedMessageId: messageID(g.wal(), 2), TimeTick: tsBase}, {}},
	}
}

func (g *generator) replication() {
	if g.Replicating {
		g.put(g.message(&streamingpb.ReplicatePChannelMeta{
			SourceChannelName: g.pchannel(0), TargetChannelName: "other-dml_0",
			InitializedCheckpoint: &commonpb.ReplicateCheckpoint{ClusterId: "by-dev", MessageId: messageID(g.wal(), 3)},
		}), "streamingcoord-meta/replicating-pchannel/other-%s", g.pchannel(0))
	}
	if g.ReplicateConfig {
		g.put(g.message(&streamingpb.ReplicateConfigurationMeta{ReplicateConfiguration: &commonpb.ReplicateConfiguration{}}), "streamingcoord-meta/replicate-configuration")
	}
}
