// Package milvusfixture makes the etcd contents that a stopped Milvus 2.6 leaves,
// from Milvus's own protobuf messages, the same for the same Spec. It is the
// witness of the tests: the product never imports it, nor it the product, and it
// spells every key itself.
package milvusfixture

import (
	"fmt"
	"path"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
)

// Spec says what to make. The zero value of a variant leaves it out.
type Spec struct {
	Root        string // etcd.rootPath
	MetaSubPath string // etcd.metaSubPath
	WAL         string // the WAL that positions name: pulsar, kafka, rocksmq, woodpecker

	Collections           int
	SegmentsPerCollection int
	Pchannels             int

	Growing   bool // one segment in state Growing
	Sealed    bool // one segment in state Sealed
	Flushing  bool // one segment in state Flushing
	Importing bool // one segment of a bulk insert

	BroadcastPending bool // one broadcast that is not finished
	CheckpointField7 bool // a consume checkpoint with a field that no release has
	Magic2           bool // a consume checkpoint of recovery storage V2
	NewerDirectory   bool // a directory of a branch below a physical channel
	Replicating      bool // a channel replicated to another cluster
	ReplicateConfig  bool // a configured replication
	ChannelWatch     bool // what Milvus 2.5 left
	BothKeys         bool // collection A under its legacy key too
	TiKV             bool // metastore.type overridden in etcd

	Corrupt []string // families that get one key with a value that does not decode
	Empty   []string // families that get one key with an empty value
	OddKeys bool     // one key of each family with a part too many or too few

	MQType            string // the pin; "none": no pin, "": that of WAL
	PinAlias          string // the pin spelled another way
	NoChannels        bool   // no physical channel is listed
	MissingCheckpoint bool   // the last physical channel was never consumed
}

// Default is the smallest instance that has one of everything.
func Default() Spec {
	return Spec{Root: "by-dev", MetaSubPath: "meta", WAL: "pulsar", Collections: 2, SegmentsPerCollection: 10, Pchannels: 2}
}

// Ids and times, as in a Milvus of 2025.
const (
	tsBase     = 461650000000000000
	firstColl  = tsBase + 1
	firstPart  = tsBase + 10_000_000
	firstSeg   = tsBase + 20_000_000
	defaultDB  = 1
	secondDB   = tsBase + 100
	legacyColl = tsBase + 900_000
	deadColl   = tsBase + 900_001 // a tombstone
	goneColl   = tsBase + 900_002 // dropped, its channel marker is left
	orphanColl = tsBase + 900_003 // dropped, its query target is left
	shards     = 2
)

// Emit takes one key; keys come in no particular order, each once.
type Emit func(key string, value []byte) error

// Each makes every key of the instance.
func (s Spec) Each(emit Emit) error {
	g := &generator{Spec: s, meta: path.Join(s.Root, s.MetaSubPath), emit: emit}
	for _, part := range []func(){
		g.databases, g.collections, g.segments, g.checkpoints, g.streaming, g.query, g.allocators, g.pin, g.damage,
	} {
		part()
	}
	return g.err
}

// generator spells keys and values; the first error stops it.
type generator struct {
	Spec
	meta string
	emit Emit
	err  error
}

// put emits a key below the meta root.
func (g *generator) put(value []byte, format string, args ...any) {
	g.putRoot(value, g.meta+"/"+format, args...)
}

// putRoot emits a key as it is.
func (g *generator) putRoot(value []byte, format string, args ...any) {
	if g.err == nil {
		g.err = g.emit(fmt.Sprintf(format, args...), value)
	}
}

// message is a value as Milvus writes it, with maps in one order.
func (g *generator) message(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil && g.err == nil {
		g.err = err
	}
	return b
}

// unknownField is a field that these messages do not have: what a newer Milvus adds.
func unknownField(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

func (g *generator) wal() commonpb.WALName {
	name, ok := walNames[g.WAL]
	if !ok && g.err == nil {
		g.err = fmt.Errorf("wal %q: want pulsar, kafka, rocksmq or woodpecker", g.WAL)
	}
	return name
}

func (g *generator) pchannel(n int) string {
	return fmt.Sprintf("%s-rootcoord-dml_%d", path.Base(g.Root), n%g.Pchannels)
}

func (g *generator) vchannel(collection int64, shard int) string {
	return fmt.Sprintf("%s_%dv%d", g.pchannel(g.firstShard(collection)+shard), collection, shard)
}

// firstShard spreads collections over the physical channels.
func (g *generator) firstShard(collection int64) int { return int(collection-firstColl) * shards }

func (g *generator) collectionID(n int) int64 { return firstColl + int64(n) }

func (g *generator) dbOf(collection int64) int64 {
	if (collection-firstColl)%2 == 1 {
		return secondDB
	}
	return defaultDB
}
