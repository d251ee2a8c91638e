package milvusfixture

import "fmt"

// damaged is a key of each family that can be damaged: one beside those that exist.
var damaged = map[string]string{
	"collections":         "root-coord/database/collection-info/1/77",
	"legacy-collections":  "root-coord/collection/77",
	"segments":            "datacoord-meta/s/77/77/77",
	"channel-checkpoints": "datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_77v0",
	"consume-checkpoints": "streamingnode-meta/wal/by-dev-rootcoord-dml_77/consume-checkpoint",
	"broadcasts":          "streamingcoord-meta/broadcast-task/77",
}

// damage adds what a disk error, or somebody with a keyboard, leaves behind.
func (g *generator) damage() {
	for _, family := range g.Corrupt {
		g.damagedKey(family, []byte("\x0a\x7fcut short"))
	}
	for _, family := range g.Empty {
		g.damagedKey(family, nil)
	}
	if g.OddKeys {
		g.put(nil, "root-coord/database/collection-info/77")
		g.put(nil, "root-coord/collection/77/77")
		g.put(nil, "datacoord-meta/s/77/77")
		g.put(nil, "datacoord-meta/channel-cp/a/b")
		g.put(nil, "streamingnode-meta/wal/%s/consume-checkpoint/77", g.pchannel(0))
	}
}

func (g *generator) damagedKey(family string, value []byte) {
	key, ok := damaged[family]
	if !ok {
		if g.err == nil {
			g.err = fmt.Errorf("no family %q", family)
		}
		return
	}
	g.put(value, "%s", key)
}
