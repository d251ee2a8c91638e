package milvus

import (
	"path"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// KV is one key and its value.
type KV struct{ Key, Value string }

// Fixture is the metadata that a stopped Milvus leaves and by which an
// instance is known to exist: the permanent session keys and its pchannels.
func Fixture(root string, pchannels []string) []KV {
	meta := MetaRoot(root)
	kvs := []KV{
		{path.Join(meta, "session", "id"), "7"},
		{path.Join(meta, "session", "version"), "2.6.15"},
	}
	for _, p := range pchannels {
		kvs = append(kvs, KV{path.Join(meta, "streamingcoord-meta", "pchannel", p), pchannelMeta(p)})
	}
	return kvs
}

// PChannel names physical channel n the way Milvus does.
func PChannel(root string, n int) string {
	return path.Base(root) + "-rootcoord-dml_" + strconv.Itoa(n)
}

// pchannelMeta is a streamingpb.PChannelMeta: channel{name, term, access_mode},
// node{server_id, address}, state.
func pchannelMeta(name string) string {
	const term, readWrite, serverID, assigned = 3, 1, 3, 3
	channel := protowire.AppendTag(nil, 1, protowire.BytesType)
	channel = protowire.AppendString(channel, name)
	channel = appendVarint(channel, 2, term)
	channel = appendVarint(channel, 3, readWrite)
	node := appendVarint(nil, 1, serverID)
	node = protowire.AppendTag(node, 2, protowire.BytesType)
	node = protowire.AppendString(node, "127.0.0.1:22222")
	out := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), channel)
	out = protowire.AppendBytes(protowire.AppendTag(out, 2, protowire.BytesType), node)
	return string(appendVarint(out, 3, assigned))
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}
