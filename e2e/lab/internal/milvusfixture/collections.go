package milvusfixture

import (
	"fmt"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus/pkg/v2/proto/etcdpb"
)

const tombstone = "\xe2\x9b\xbc"

func (g *generator) databases() {
	for id, name := range map[int64]string{defaultDB: "default", secondDB: "db2"} {
		g.put(g.message(&etcdpb.DatabaseInfo{Id: id, Name: name, CreatedTime: tsBase}), "root-coord/database/db-info/%d", id)
	}
}

func (g *generator) collections() {
	for n := range g.Collections {
		id := g.collectionID(n)
		g.put(g.message(g.collection(id)), "root-coord/database/collection-info/%d/%d", g.dbOf(id), id)
		for field := int64(100); field < 103; field++ {
			g.put(g.message(&schemapb.FieldSchema{FieldID: field, Name: fmt.Sprintf("field%d", field), DataType: schemapb.DataType_Int64, IsPrimaryKey: field == 100}),
				"root-coord/fields/%d/%d", id, field)
		}
		part := g.partition(id)
		g.put(g.message(&etcdpb.PartitionInfo{PartitionID: part, PartitionName: "_default", CollectionId: id, PartitionCreatedTimestamp: tsBase}),
			"root-coord/partitions/%d/%d", id, part)
	}
	g.history()
}

// history is what older versions left among the collections.
func (g *generator) history() {
	first := g.collectionID(0)
	legacy := g.collection(legacyColl)
	legacy.DbId = 0
	g.put(g.message(legacy), "root-coord/collection/%d", legacyColl)
	if g.BothKeys {
		g.put(g.message(g.collection(first)), "root-coord/collection/%d", first)
	}
	g.put(g.message(&etcdpb.AliasInfo{AliasName: "x", CollectionId: first}), "root-coord/collection-alias/x")
	g.put([]byte(`{"username":"root"}`), "root-coord/credential/users/root")
	g.put(g.message(g.collection(first)), "snapshots/root-coord/database/collection-info/1/%d_ts%d", first, uint64(tsBase))
	g.put([]byte(tombstone), "root-coord/database/collection-info/1/%d", deadColl)
	g.put([]byte(tombstone), "snapshots/root-coord/database/collection-info/1/%d_ts%d", deadColl, uint64(tsBase))
}

// collection has a schema without fields: those have keys of their own.
func (g *generator) collection(id int64) *etcdpb.CollectionInfo {
	c := &etcdpb.CollectionInfo{
		ID: id, CreateTime: tsBase, ShardsNum: shards, DbId: g.dbOf(id), UpdateTimestamp: tsBase + 1,
		Schema:     &schemapb.CollectionSchema{Name: fmt.Sprintf("collection%d", id-firstColl), EnableDynamicField: true},
		Properties: []*commonpb.KeyValuePair{{Key: "collection.ttl.seconds", Value: "0"}},
	}
	for shard := range shards {
		pchannel := g.pchannel(g.firstShard(id) + shard)
		c.VirtualChannelNames = append(c.VirtualChannelNames, g.vchannel(id, shard))
		c.PhysicalChannelNames = append(c.PhysicalChannelNames, pchannel)
		c.StartPositions = append(c.StartPositions, &commonpb.KeyDataPair{Key: pchannel, Data: rawID(g.wal(), int64(shard))})
	}
	return c
}

func (g *generator) partition(collection int64) int64 { return firstPart + collection - firstColl }
