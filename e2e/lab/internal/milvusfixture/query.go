package milvusfixture

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"

	"github.com/milvus-io/milvus/pkg/v2/proto/querypb"
)

// query is what querycoord keeps: what is loaded, and up to where.
func (g *generator) query() {
	frames, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		g.err = err
		return
	}
	defer frames.Close()
	target := func(id int64) {
		v := g.vchannel(g.collectionID(0), 0)
		raw := g.message(&querypb.CollectionTarget{CollectionID: id, Version: tsBase, ChannelTargets: []*querypb.ChannelTarget{{
			ChannelName: v, SeekPosition: position(g.wal(), 1, v), DeleteCheckpoint: position(g.wal(), 2, v),
		}}})
		g.put(frames.EncodeAll(raw, nil), "queryCoord-Collection-Target/%d", id)
	}
	for c := range g.Collections {
		id := g.collectionID(c)
		target(id)
		g.put(g.message(&querypb.CollectionLoadInfo{CollectionID: id, ReplicaNumber: 1, FieldIndexID: map[int64]int64{100: 1, 101: 2}}), "querycoord-collection-loadinfo/%d", id)
		g.put(g.message(&querypb.Replica{ID: id + 1, CollectionID: id, Nodes: []int64{5}}), "querycoord-replica/%d/%d", id, id+1)
	}
	target(orphanColl)
}

// allocators hand out ids and time; they and the permanent session keys are not
// protobuf.
func (g *generator) allocators() {
	g.put([]byte("7"), "session/id")
	g.put([]byte("2.6.15"), "session/version")
	number := binary.BigEndian.AppendUint64(nil, tsBase)
	g.putRoot(number, "%s/kv/tso/timestamp", g.Root)
	g.putRoot(number, "%s/kv/gid/idTimestamp", g.Root)
	g.putRoot(number, "%s/kv/querycoord-id-allocator/idTimestamp", g.Root)
}

func (g *generator) pin() {
	value := g.MQType
	if value == "" {
		value = g.WAL
	}
	if value != "none" {
		g.putRoot([]byte(value), "%s/config/mqtype", g.Root)
	}
	if g.PinAlias != "" {
		g.putRoot([]byte(g.PinAlias), "%s/config/mq.type", g.Root)
	}
	if g.TiKV {
		g.putRoot([]byte("tikv"), "%s/config/metastore.type", g.Root)
	}
}
