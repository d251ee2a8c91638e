package milvus

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"runbook/internal/fault"
)

// WAL is a write-ahead log that Milvus can use, numbered as in
// commonpb.WALName (milvus-proto go-api v2.6.18).
type WAL int32

// The WALs. Unknown is what positions written before WALs were named hold: Milvus
// reads them as those of the WAL that mq.type names.
const (
	Unknown    WAL = 0
	RocksMQ    WAL = 1
	Pulsar     WAL = 2
	Kafka      WAL = 3
	Woodpecker WAL = 4
)

var walNames = []string{"unknown", "rocksmq", "pulsar", "kafka", "woodpecker"}

// String is the name that mq.type and plans use.
func (w WAL) String() string {
	if w < 0 || int(w) >= len(walNames) {
		return fmt.Sprintf("WAL number %d", int32(w))
	}
	return walNames[w]
}

// ParseWAL reads the name of a WAL that positions can be set to.
func ParseWAL(name string) (WAL, error) {
	for i, known := range walNames {
		if i > 0 && name == known {
			return WAL(i), nil
		}
	}
	return Unknown, fmt.Errorf("%q is none of %s", name, strings.Join(walNames[1:], ", "))
}

// Position is a place in a WAL in the two encodings of its message id: Raw where
// a field is bytes (msgpb.MsgPosition, commonpb.KeyDataPair), Text where it is a
// string (commonpb.MessageID).
type Position struct {
	WAL  WAL
	Raw  []byte
	Text string
}

// Earliest is the position before the first message of a WAL.
//
// Woodpecker's is (segment 0, entry 0), which protobuf writes as nothing at all:
// Raw and Text are empty, and only the WAL's name tells it from no position.
// Pulsar's has four fields of -1 and a batch size of 0, as pulsar-client-go 0.14
// and later write it.
func Earliest(w WAL) (Position, error) {
	switch w {
	case Woodpecker:
		return Position{WAL: w}, nil
	case Kafka, RocksMQ:
		const offset = 0
		return Position{WAL: w, Raw: binary.LittleEndian.AppendUint64(nil, offset), Text: strconv.FormatUint(offset, 36)}, nil
	case Pulsar:
		raw := pulsarEarliest()
		return Position{WAL: w, Raw: raw, Text: base64.StdEncoding.EncodeToString(raw)}, nil
	}
	return Position{}, fmt.Errorf("%s has no earliest position", w)
}

func pulsarEarliest() []byte {
	const (
		ledger, entry, partition, batchIndex, batchSize = 1, 2, 3, 4, 6
		none                                            = ^uint64(0) // -1
	)
	var raw []byte
	for _, number := range []protowire.Number{ledger, entry, partition, batchIndex} {
		raw = protowire.AppendTag(raw, number, protowire.VarintType)
		raw = protowire.AppendVarint(raw, none)
	}
	raw = protowire.AppendTag(raw, batchSize, protowire.VarintType)
	return protowire.AppendVarint(raw, 0)
}

// is says whether a stored raw id names this position; nil and empty are the same.
func (p Position) is(wal WAL, raw []byte) bool { return wal == p.WAL && bytes.Equal(raw, p.Raw) }

// WALCounts says how many stored positions name each WAL.
type WALCounts map[WAL]int64

// Stored says what the channel and consume checkpoints of an instance name: what
// its data really lies in, whatever its configuration says.
type Stored struct {
	WALs WALCounts
	// Fresh are those that name woodpecker at its earliest, as a reset leaves them:
	// nothing was ever read from there.
	Fresh int64
}

// StoredPositions reads them. Markers of dropped channels name no WAL and are left
// out. A checkpoint that cannot be read is a refusal (code positions.unreadable):
// what it names is not known.
func StoredPositions(ctx context.Context, client clientv3.KV, metaRoot string) (Stored, error) {
	stored := Stored{WALs: WALCounts{}}
	view, err := NewView(ctx, client, metaRoot)
	if err != nil {
		return stored, err
	}
	for kv, err := range view.Entries(ctx, ChannelCheckpoints.Prefix(metaRoot)) {
		if err != nil {
			return stored, err
		}
		if _, err := ChannelCheckpoints.ParseKey(metaRoot, string(kv.Key)); err != nil {
			return stored, unreadable(kv.Key, err)
		}
		checkpoint, err := ReadChannelCheckpoint(kv.Value)
		if err != nil {
			return stored, unreadable(kv.Key, err)
		}
		if !checkpoint.Dropped {
			stored.add(checkpoint.WAL, len(checkpoint.ID))
		}
	}
	checkpoints, err := ConsumeCheckpointsOf(ctx, view, metaRoot)
	for _, checkpoint := range checkpoints {
		stored.add(checkpoint.WAL, len(checkpoint.ID))
	}
	return stored, err
}

func (s *Stored) add(wal WAL, idLength int) {
	s.WALs[wal]++
	if wal == Woodpecker && idLength == 0 {
		s.Fresh++
	}
}

// ConsumeCheckpointsOf reads the consume checkpoint of each physical channel that
// has one.
func ConsumeCheckpointsOf(ctx context.Context, view View, metaRoot string) (map[string]ConsumeCheckpoint, error) {
	checkpoints := map[string]ConsumeCheckpoint{}
	for kv, err := range view.Keys(ctx, WALPrefix(metaRoot)) {
		if err != nil {
			return nil, err
		}
		key, err := ConsumeCheckpoints.ParseKey(metaRoot, string(kv.Key))
		if err != nil {
			continue
		}
		full, err := view.Get(ctx, string(kv.Key))
		if err != nil {
			return nil, err
		}
		if checkpoints[key.PChannel], err = ReadConsumeCheckpoint(full.Value); err != nil {
			return nil, unreadable(kv.Key, err)
		}
	}
	return checkpoints, nil
}

func unreadable(key []byte, err error) error {
	return fault.Refuse("positions.unreadable", "this checkpoint cannot be read").At(string(key)).Because(err).
		Hint("repair or remove it: milvus reads it at its next start too")
}

// Pchannels lists the physical channels that streamingcoord has assigned.
// Milvus 2.6 makes them at its first start, so none means that no 2.6 ran here.
func Pchannels(ctx context.Context, client clientv3.KV, metaRoot string) ([]string, error) {
	view, err := NewView(ctx, client, metaRoot)
	if err != nil {
		return nil, err
	}
	var names []string
	for kv, err := range view.Keys(ctx, PChannelMetas.Prefix(metaRoot)) {
		if err != nil {
			return nil, err
		}
		if key, err := PChannelMetas.ParseKey(metaRoot, string(kv.Key)); err == nil {
			names = append(names, key.PChannel)
		}
	}
	return names, nil
}

// Names are the WALs named, in alphabetical order; positions that name none are
// left out.
func (c WALCounts) Names() []string {
	var names []string
	for wal, n := range c {
		if wal != Unknown && n > 0 {
			names = append(names, wal.String())
		}
	}
	slices.Sort(names)
	return names
}

// String lists the WALs named and how often.
func (c WALCounts) String() string {
	var parts []string
	for _, wal := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", wal, c[wal]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " and ")
}
