package woodpecker

import (
	"fmt"
	"path"
	"strings"
)

// Space is the bucket and root under which log-store nodes keep the logs of one
// instance. Every call to a node carries both, and a node trusts what it is
// sent: with an empty root or bucket it would remove what other instances own
// or its whole disk. So a Space cannot be made of anything but two plain names.
type Space struct{ bucket, root string }

// NewSpace takes the bucket and woodpecker's minio.rootPath ({rootPath}/wp in
// Milvus). The root must be in the form that woodpecker's service mode insists
// on, relative and clean: under any other spelling a node would find nothing.
func NewSpace(bucket, root string) (Space, error) {
	switch {
	case bucket == "" || strings.ContainsAny(bucket, "/\\") || strings.HasPrefix(bucket, "."):
		return Space{}, fmt.Errorf("%q is no bucket", bucket)
	case root == "" || strings.HasPrefix(root, "/") || root != path.Clean(root) || strings.HasPrefix(root, "."):
		return Space{}, fmt.Errorf("%q is no root that log-store nodes accept: relative, without empty parts and without a slash at its end", root)
	}
	return Space{bucket, root}, nil
}

// Log refers to one log of the instance.
func (s Space) Log(id int64) (LogRef, error) {
	if s == (Space{}) || id < 1 {
		return LogRef{}, fmt.Errorf("no log %d in bucket %q, root %q", id, s.bucket, s.root)
	}
	return LogRef{space: s, id: id}, nil
}

// LogRef is one log as a node is told of it. Only Space.Log makes one that a
// Node accepts: none of its parts is empty.
type LogRef struct {
	space Space
	id    int64
}

// ID is the log's id.
func (r LogRef) ID() int64 { return r.id }

func (r LogRef) valid() error {
	if r == (LogRef{}) {
		return fmt.Errorf("a reference to no log")
	}
	return nil
}
