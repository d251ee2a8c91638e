package milvus

import (
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
	r := readValue(value)
	c := Collection{ID: int64(r.number(collectionID))}
	if r.err != nil {
		return c, r.err
	}
	err := r.m.find(collectionStarts, protowire.BytesType, func(f *field) error {
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
	Positioned                bool // has a start or a DML position, even an empty one
}

// ReadSegment reads the value of a segment key.
func ReadSegment(value []byte) (Segment, error) {
	r := readValue(value)
	s := Segment{
		ID:         int64(r.number(segmentID)),
		Collection: int64(r.number(segmentCollection)),
		Partition:  int64(r.number(segmentPartition)),
		Channel:    r.text(segmentChannel),
		State:      SegmentState(r.number(segmentState)),
		Importing:  r.number(segmentImporting) != 0,
	}
	_, start := r.embedded(segmentStart)
	_, dml := r.embedded(segmentDML)
	s.Positioned = start || dml
	return s, r.err
}

// ChannelCheckpoint is what is read of a msgpb.MsgPosition below channel-cp.
type ChannelCheckpoint struct {
	Channel   string // virtual
	WAL       WAL
	ID        []byte // raw; empty means woodpecker's earliest, or nothing for another WAL
	Timestamp uint64
	// Dropped marks a channel whose collection was dropped: no message id and the
	// highest timestamp there is. It is not a position.
	Dropped bool
}

// ReadChannelCheckpoint reads the value of a channel checkpoint.
func ReadChannelCheckpoint(value []byte) (ChannelCheckpoint, error) {
	r := readValue(value)
	c := ChannelCheckpoint{
		Channel:   r.text(positionChannel),
		WAL:       WAL(r.number(positionWAL)),
		ID:        r.bytes(positionID),
		Timestamp: r.number(positionTimestamp),
	}
	c.Dropped = c.Timestamp == math.MaxUint64 && len(c.ID) == 0
	return c, r.err
}

// ConsumeCheckpoint is what is read of a streamingpb.WALCheckpoint: where a
// streamingnode resumes a physical channel. Milvus opens the WAL that it names.
type ConsumeCheckpoint struct {
	WAL      WAL
	ID       string // as text; empty means woodpecker's earliest, or nothing for another WAL
	TimeTick uint64
	Magic    int64 // layout of recovery, see KnownMagic
	// AlterWAL: an online switch was under way when Milvus stopped.
	AlterWAL bool
	// Unknown are numbers of fields that no release has; branches keep further
	// positions in them.
	Unknown []int32
}

// KnownMagic is the highest recovery_magic that is understood here: the layout
// after it keeps further positions in other places.
const KnownMagic = 1

// ReadConsumeCheckpoint reads the value of a consume checkpoint.
func ReadConsumeCheckpoint(value []byte) (ConsumeCheckpoint, error) {
	r := readValue(value)
	c := ConsumeCheckpoint{TimeTick: r.number(checkpointTimeTick), Magic: int64(r.number(checkpointMagic))}
	message, _ := r.embedded(checkpointMessage)
	id := reader{m: message, err: r.err}
	c.WAL, c.ID = WAL(id.number(messageIDWAL)), id.text(messageIDText)
	for _, f := range r.m {
		c.AlterWAL = c.AlterWAL || f.number == checkpointAlterWAL
		if f.number > checkpointAlterWAL {
			c.Unknown = append(c.Unknown, int32(f.number))
		}
	}
	return c, id.err
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
	r := readValue(value)
	state := BroadcastState(r.number(broadcastState))
	return state, r.err
}

// reader takes fields out of a message and keeps the first error.
type reader struct {
	m   message
	err error
}

func readValue(value []byte) *reader {
	m, err := open(value)
	return &reader{m: m, err: err}
}

func (r *reader) number(n protowire.Number) uint64 { return keep(r, n, r.m.varint) }
func (r *reader) bytes(n protowire.Number) []byte  { return keep(r, n, r.m.bytes) }
func (r *reader) text(n protowire.Number) string   { return keep(r, n, r.m.text) }

func (r *reader) embedded(n protowire.Number) (message, bool) {
	if r.err != nil {
		return nil, false
	}
	inner, present, err := r.m.embedded(n)
	r.err = err
	return inner, present
}

func keep[T any](r *reader, n protowire.Number, get func(protowire.Number) (T, error)) (value T) {
	if r.err == nil {
		value, r.err = get(n)
	}
	return value
}
