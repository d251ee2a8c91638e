// Package layout knows how woodpecker lays out its data on the three tiers:
// etcd keys (through woodpecker's own key builder), object names and node
// directories. It reads and writes nothing.
package layout

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/zilliztech/woodpecker/meta"
)

// Instance addresses the WAL of one Milvus.
type Instance struct {
	Root       string `json:"root"`       // Milvus's etcd.rootPath
	MetaPrefix string `json:"metaPrefix"` // a name below Root, or /name at the top
	Bucket     string `json:"bucket"`
	ObjectRoot string `json:"objectRoot"` // Milvus's minio.rootPath, verbatim
}

// Default is Milvus's and woodpecker's default addressing.
func Default() Instance {
	return Instance{Root: "by-dev", MetaPrefix: "woodpecker", Bucket: "a-bucket", ObjectRoot: "files"}
}

// EtcdPrefix is the prefix of the instance's WAL metadata, without a slash.
func (i Instance) EtcdPrefix() string {
	if top, ok := strings.CutPrefix(i.MetaPrefix, "/"); ok {
		return top
	}
	return path.Join(i.Root, i.MetaPrefix)
}

// Keys builds the instance's metadata keys.
func (i Instance) Keys() *meta.KeyBuilder { return meta.NewKeyBuilder(i.EtcdPrefix()) }

// WALRoot is woodpecker's root, exactly as Milvus derives it: the object root
// is not cleaned, so that "files/" gives "files//wp".
func (i Instance) WALRoot() string { return i.ObjectRoot + "/wp" }

// CleanWALRoot is the nearest root that woodpecker's service mode accepts.
func (i Instance) CleanWALRoot() string { return strings.TrimPrefix(path.Clean(i.WALRoot()), "/") }

// InstanceKeys are the four keys that make a woodpecker instance, by name.
func InstanceKeys(k *meta.KeyBuilder) map[string]string {
	return map[string]string{
		"instance": k.ServiceInstanceKey(), "version": k.VersionKey(),
		"logidgen": k.LogIdGeneratorKey(), "quorumidgen": k.QuorumIdGeneratorKey(),
	}
}

// InstanceKeyNames lists the names in InstanceKeys in a fixed order.
func InstanceKeyNames() []string { return []string{"instance", "version", "logidgen", "quorumidgen"} }

// LegacyPrefix is where woodpecker kept metadata before prefixes could be set.
const LegacyPrefix = meta.LegacyServicePrefix

// Numbers are as woodpecker writes them: without leading zeros.
var objectName = regexp.MustCompile(`^(?:(.*)/)?([1-9]\d*)/(0|[1-9]\d*)/(?:m_\d+\.blk|\d+\.blk|footer\.blk|write\.lock)$`)

// Object is an object name taken apart.
type Object struct {
	Root    string
	LogID   int64
	Segment int64
}

// ParseObject takes an object key apart; ok is false when it is not
// woodpecker's.
func ParseObject(key string) (o Object, ok bool) {
	m := objectName.FindStringSubmatch(key)
	if m == nil {
		return Object{}, false
	}
	log, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return Object{}, false
	}
	segment, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		return Object{}, false
	}
	return Object{Root: m[1], LogID: log, Segment: segment}, true
}

// MarkersDir is the directory on a node's disk that holds delete markers.
const MarkersDir = ".deleted"

// NodeFile is the path of a file on a node's disk taken apart.
type NodeFile struct {
	Owner   string // bucket and root
	LogID   int64
	Segment int64
	Name    string
}

var nodeFile = regexp.MustCompile(`^(.+)/(\d+)/(\d+)/([^/]+)$`)

// ParseNodeFile takes a slash-separated path below a node's data directory
// apart; ok is false for markers and the node's own files.
func ParseNodeFile(p string) (f NodeFile, ok bool) {
	m := nodeFile.FindStringSubmatch(p)
	if m == nil || strings.HasPrefix(p, MarkersDir+"/") {
		return NodeFile{}, false
	}
	log, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return NodeFile{}, false
	}
	segment, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		return NodeFile{}, false
	}
	return NodeFile{Owner: m[1], LogID: log, Segment: segment, Name: m[4]}, true
}

// NodeOwner is the directory below a node's data directory that holds the
// instance's logs.
func (i Instance) NodeOwner() string { return path.Join(i.Bucket, i.CleanWALRoot()) }
