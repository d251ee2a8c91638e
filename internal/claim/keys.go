package claim

import "path"

// Place says where a claim is kept. Both paths are as Milvus joins them.
type Place struct {
	Root     string // Milvus's etcd.rootPath
	MetaRoot string // {rootPath}/{metaSubPath}: where sessions are looked for
}

// folder lies beside Milvus's own {root}/meta and {root}/config, which Milvus
// lists as a whole: a key of ours below them would be read as one of its own.
const folder = "runbook"

func (p Place) lockKey() string   { return LockKey(p.Root) }
func (p Place) markerKey() string { return MarkerKey(p.Root) }

// LockKey holds a Holder as JSON, under a lease, while a run works.
func LockKey(root string) string { return path.Join(root, folder, "lock") }

// MarkerKey holds a Marker as JSON from before a run's first destructive effect
// until its last verification.
func MarkerKey(root string) string { return path.Join(root, folder, "in-progress") }
