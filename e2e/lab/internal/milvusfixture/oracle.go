package milvusfixture

import (
	"bytes"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/msgpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/datapb"
	"github.com/milvus-io/milvus/pkg/v2/proto/etcdpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/streamingpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The oracle says what a reset must have made of a key, with Milvus's messages
// and without a line of the product.

// Fate is what a reset does with a key.
type Fate int

// The fates.
const (
	Kept      Fate = iota // byte for byte
	Rewritten             // its position, and nothing else
	Removed
)

// FateOf says what a reset of a whole instance does with one of its keys.
func (s Spec) FateOf(key string, value []byte) Fate {
	rest, below := strings.CutPrefix(key, path.Join(s.Root, s.MetaSubPath)+"/")
	switch {
	case key == s.Root+"/config/mqtype":
		return Rewritten
	case !below:
		return Kept
	case strings.HasPrefix(rest, "queryCoord-Collection-Target/"), strings.Contains(rest, "/segment-assign/"):
		return Removed
	case messageOf(rest) == nil, !readable(rest, value), isDropMarker(rest, value):
		return Kept
	}
	return Rewritten
}

// readable: a tombstone does not decode either, and no value of Milvus is empty.
func readable(rest string, value []byte) bool {
	return len(value) > 0 && proto.Unmarshal(value, messageOf(rest)) == nil
}

func isDropMarker(rest string, value []byte) bool {
	var p msgpb.MsgPosition
	return strings.HasPrefix(rest, "datacoord-meta/channel-cp/") && proto.Unmarshal(value, &p) == nil &&
		p.Timestamp == math.MaxUint64 && len(p.MsgID) == 0
}

// messageOf is an empty message of the kind that a key below the meta root holds,
// nil when it holds no position.
func messageOf(rest string) proto.Message {
	switch {
	case strings.HasPrefix(rest, "root-coord/database/collection-info/"), strings.HasPrefix(rest, "root-coord/collection/"):
		return &etcdpb.CollectionInfo{}
	case strings.HasPrefix(rest, "datacoord-meta/s/"):
		return &datapb.SegmentInfo{}
	case strings.HasPrefix(rest, "datacoord-meta/channel-cp/"):
		return &msgpb.MsgPosition{}
	case strings.HasPrefix(rest, "streamingnode-meta/wal/") && strings.HasSuffix(rest, "/consume-checkpoint"):
		return &streamingpb.WALCheckpoint{}
	}
	return nil
}

// CheckRewritten says what is wrong with the value that a reset to target left, or nil.
func (s Spec) CheckRewritten(key string, before, after []byte, target string) error {
	if key == s.Root+"/config/mqtype" {
		if string(after) != target {
			return fmt.Errorf("%s: %q", key, after)
		}
		return nil
	}
	want := messageOf(strings.TrimPrefix(key, path.Join(s.Root, s.MetaSubPath)+"/"))
	if err := CheckMessage(want, before, after, target); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// CheckMessage holds after against what Milvus's own messages make of before when
// their positions are set, and then compares the bytes of all that is not a position.
func CheckMessage(kind proto.Message, before, after []byte, target string) error {
	want, got := proto.Clone(kind), proto.Clone(kind)
	if err := proto.Unmarshal(before, want); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if err := proto.Unmarshal(after, got); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	setEarliest(want, walNames[target])
	if !proto.Equal(want, got) {
		return fmt.Errorf("want %v, got %v", want, got)
	}
	return sameBytesBut(touched(kind), before, after)
}

// setEarliest is the reset, written with Milvus's messages.
func setEarliest(m proto.Message, wal commonpb.WALName) {
	onPosition := func(p *msgpb.MsgPosition) {
		if p != nil {
			p.MsgID, p.WALName = rawID(wal, -1), wal
		}
	}
	switch m := m.(type) {
	case *etcdpb.CollectionInfo:
		for _, start := range m.StartPositions {
			start.Data = rawID(wal, -1)
		}
	case *datapb.SegmentInfo:
		onPosition(m.StartPosition)
		onPosition(m.DmlPosition)
	case *msgpb.MsgPosition:
		onPosition(m)
	case *streamingpb.WALCheckpoint:
		if m.MessageId == nil {
			m.MessageId = &commonpb.MessageID{}
		}
		m.MessageId.Id, m.MessageId.WALName = textID(wal, -1), wal
		m.ProtoReflect().SetUnknown(without(m.ProtoReflect().GetUnknown(), 6))
	}
}

func touched(kind proto.Message) []protowire.Number {
	switch kind.(type) {
	case *etcdpb.CollectionInfo:
		return []protowire.Number{11}
	case *datapb.SegmentInfo:
		return []protowire.Number{9, 10}
	case *msgpb.MsgPosition:
		return []protowire.Number{2, 5}
	default: // streamingpb.WALCheckpoint
		return []protowire.Number{1, 6}
	}
}

// sameBytesBut compares two messages without some fields, byte for byte: order,
// unknown fields, maps and the lengths that somebody chose to write.
func sameBytesBut(numbers []protowire.Number, before, after []byte) error {
	for _, number := range numbers {
		before, after = without(before, number), without(after, number)
	}
	if !bytes.Equal(before, after) {
		return fmt.Errorf("fields besides %v differ: %x, then %x", numbers, before, after)
	}
	return nil
}

func without(b []byte, number protowire.Number) []byte {
	var kept []byte
	for len(b) > 0 {
		n, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return append(kept, b...)
		}
		if n != number {
			kept = append(kept, b[:size]...)
		}
		b = b[size:]
	}
	return kept
}
