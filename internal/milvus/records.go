package milvus

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers, as in milvus pkg/v2 (2.6.7) and milvus-proto go-api v2.6.18.
// They are the same in 3.0.
const (
	positionChannel, positionID, positionTimestamp, positionWAL = 1, 2, 4, 5 // msgpb.MsgPosition

	messageIDText, messageIDWAL = 1, 2 // commonpb.MessageID

	pairKey, pairData = 1, 2 // commonpb.KeyDataPair

	collectionID, collectionVirtual, collectionStarts, collectionState = 1, 7, 11, 13 // etcdpb.CollectionInfo

	segmentID, segmentCollection, segmentPartition, segmentChannel = 1, 2, 3, 4 // datapb.SegmentInfo
	segmentState, segmentStart, segmentDML, segmentImporting       = 6, 9, 10, 17

	checkpointMessage, checkpointTimeTick, checkpointMagic = 1, 2, 3 // streamingpb.WALCheckpoint
	checkpointAlterWAL                                     = 6       // added for 3.0, ported to 2.6

	broadcastState = 2 // streamingpb.BroadcastTask
)

// SegmentState is commonpb.SegmentState.
type SegmentState int32

// The states that a WAL switch asks about.
const (
	Growing   SegmentState = 2 // rows that only the WAL holds
	Sealed    SegmentState = 3 // closed, flush not done
	Flushed   SegmentState = 4
	Flushing  SegmentState = 5 // flush not done
	Dropped   SegmentState = 6
	Importing SegmentState = 7
)

var segmentStates = []string{"none", "not existing", "growing", "sealed", "flushed", "flushing", "dropped", "importing"}

// String is the state's name in lower case.
func (s SegmentState) String() string {
	if s < 0 || int(s) >= len(segmentStates) {
		return fmt.Sprintf("state %d", int32(s))
	}
	return segmentStates[s]
}

// Unflushed says whether rows of the segment may exist in the WAL only.
func (s SegmentState) Unflushed() bool { return s == Growing || s == Sealed || s == Flushing }

// Collection is what is read of an etcdpb.CollectionInfo.
type Collection struct {
	ID       int64
	Channels []string // physical, of its start positions
}

// ReadCollection reads the value of a collection key.
func ReadCollection(value []byte) (Collection, error) {
	m, err := open(value)
	if err != nil {
		return Collection{}, err
	}
	id, err := m.varint(collectionID)
	if err != nil {
		return Collection{}, err
	}
	c := Collection{ID: int64(id)}
	err = m.find(collectionStarts, protowire.BytesType, func(f *field) error {
		pair, err := parse(f.value)
		if err != nil {
			return err
		}
		channel, err := pair.text(pairKey)
		c.Channels = append(c.Channels, channel)
		return err
	})
	return c, err
}

// Segment is what is read of a datapb.SegmentInfo.
type Segment struct {
	ID, Collection, Partition int64
	Channel                   string // virtual
	State                     SegmentState
	Importing                 bool // by a bulk insert that has not completed
}

// ReadSegment reads the value of a segment key.
func ReadSegment(value []byte) (Segment, error) {
	m, err := open(value)
	if err != nil {
		return Segment{}, err
	}
	var errs [6]error
	number := func(i int, n protowire.Number) (v uint64) { v, errs[i] = m.varint(n); return v }
	s := Segment{
		ID:         int64(number(0, segmentID)),
		Collection: int64(number(1, segmentCollection)),
		Partition:  int64(number(2, segmentPartition)),
		State:      SegmentState(number(3, segmentState)),
		Importing:  number(4, segmentImporting) != 0,
	}
	s.Channel, errs[5] = m.text(segmentChannel)
	return s, errors.Join(errs[:]...)
}

// ChannelCheckpoint is what is read of a msgpb.MsgPosition below channel-cp.
type ChannelCheckpoint struct {
	Channel   string // virtual
	WAL       WAL
	Timestamp uint64
	// Dropped marks a channel whose collection was dropped: no message id and the
	// highest timestamp there is. It is not a position.
	Dropped bool
}

// ReadChannelCheckpoint reads the value of a channel checkpoint.
func ReadChannelCheckpoint(value []byte) (ChannelCheckpoint, error) {
	m, err := open(value)
	if err != nil {
		return ChannelCheckpoint{}, err
	}
	channel, err1 := m.text(positionChannel)
	id, err2 := m.bytes(positionID)
	timestamp, err3 := m.varint(positionTimestamp)
	wal, err4 := m.varint(positionWAL)
	return ChannelCheckpoint{
		Channel: channel, WAL: WAL(wal), Timestamp: timestamp,
		Dropped: timestamp == math.MaxUint64 && len(id) == 0,
	}, errors.Join(err1, err2, err3, err4)
}

// ConsumeCheckpoint is what is read of a streamingpb.WALCheckpoint: where a
// streamingnode resumes a physical channel. Milvus opens the WAL that it names.
type ConsumeCheckpoint struct {
	WAL      WAL
	ID       string // as text; empty means woodpecker's earliest, or nothing for another WAL
	TimeTick uint64
	// Magic is the layout of recovery: 1 is the one understood here, 2 keeps more
	// positions elsewhere.
	Magic int64
	// AlterWAL: an online switch was under way when Milvus stopped.
	AlterWAL bool
	// Unknown are numbers of fields that no release has; branches keep further
	// positions in them.
	Unknown []int32
}

// ReadConsumeCheckpoint reads the value of a consume checkpoint.
func ReadConsumeCheckpoint(value []byte) (ConsumeCheckpoint, error) {
	m, err := open(value)
	if err != nil {
		return ConsumeCheckpoint{}, err
	}
	id, _, err1 := m.embedded(checkpointMessage)
	wal, err2 := id.varint(messageIDWAL)
	text, err3 := id.text(messageIDText)
	tick, err4 := m.varint(checkpointTimeTick)
	magic, err5 := m.varint(checkpointMagic)
	c := ConsumeCheckpoint{WAL: WAL(wal), ID: text, TimeTick: tick, Magic: int64(magic)}
	for _, f := range m {
		c.AlterWAL = c.AlterWAL || f.number == checkpointAlterWAL
		if f.number > checkpointAlterWAL {
			c.Unknown = append(c.Unknown, int32(f.number))
		}
	}
	return c, errors.Join(err1, err2, err3, err4, err5)
}

// BroadcastState is streamingpb.BroadcastTaskState.
type BroadcastState int32

// BroadcastTombstone is the only state in which a broadcast needs nothing more.
const BroadcastTombstone BroadcastState = 5

var broadcastStates = []string{"unknown", "pending", "done", "waiting for acknowledgement", "replicated", "tombstone"}

// String is the state's name in lower case.
func (s BroadcastState) String() string {
	if s < 0 || int(s) >= len(broadcastStates) {
		return fmt.Sprintf("state %d", int32(s))
	}
	return broadcastStates[s]
}

// ReadBroadcast reads the state of a broadcast task.
func ReadBroadcast(value []byte) (BroadcastState, error) {
	m, err := open(value)
	if err != nil {
		return 0, err
	}
	state, err := m.varint(broadcastState)
	return BroadcastState(state), err
}
