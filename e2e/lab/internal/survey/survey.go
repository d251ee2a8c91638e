// Package survey looks at a lab's three tiers as they are: raw etcd keys, raw
// object listings, raw disks. It needs to be told no instance, and it changes
// nothing.
package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/zilliztech/woodpecker/meta"
	"github.com/zilliztech/woodpecker/proto"
	clientv3 "go.etcd.io/etcd/client/v3"
	protobuf "google.golang.org/protobuf/proto"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/state"
)

// Survey is what was seen. A tier that could not be read has an error instead.
type Survey struct {
	EtcdRevision int64        `json:"etcdRevision"`
	Metadata     []Metadata   `json:"metadata"`
	Objects      []ObjectRoot `json:"objects"`
	Disks        []Disk       `json:"disks"`
	EtcdError    string       `json:"etcdError,omitempty"`
	ObjectsError string       `json:"objectsError,omitempty"`
}

// Metadata is one woodpecker instance in etcd.
type Metadata struct {
	Prefix       string   `json:"prefix"`
	InstanceKeys []string `json:"instanceKeys"`
	Counter      *int64   `json:"counter"`
	Logs         []Log    `json:"logs"`
	Parked       []Log    `json:"parked"`
	OtherKeys    int      `json:"otherKeys"` // readers, marking, cleaning and the like
}

// Log is a log, live or parked, as its metadata describes it.
type Log struct {
	Name     string `json:"name"`
	ID       int64  `json:"id"`
	Segments int    `json:"segments"`
	NoQuorum int    `json:"noQuorum"` // segments that record no quorum
}

// ObjectRoot is one WAL root in one bucket; Root is empty with Logs empty for
// objects below no such root.
type ObjectRoot struct {
	Bucket     string      `json:"bucket"`
	Root       string      `json:"root"`
	Logs       []LogAmount `json:"logs"`
	Other      int         `json:"other"`
	OtherBytes int64       `json:"otherBytes"`
	OtherKeys  []string    `json:"otherKeys"`
}

// LogAmount is how much there is of one log.
type LogAmount struct {
	ID    int64 `json:"id"`
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// Disk is a node's data directory; node 0 is the directory of local storage.
type Disk struct {
	N       int         `json:"n"`
	Owners  []DiskOwner `json:"owners"`
	Markers int         `json:"markers"`
	Error   string      `json:"error,omitempty"`
}

// DiskOwner is one bucket and root on a disk.
type DiskOwner struct {
	Owner string      `json:"owner"`
	Logs  []LogAmount `json:"logs"`
}

// Look looks at everything.
func Look(ctx context.Context, lab *state.Lab) (*Survey, error) {
	s := &Survey{}
	if err := s.lookEtcd(ctx, lab); err != nil {
		s.EtcdError = err.Error()
	}
	if err := s.lookObjects(ctx, lab); err != nil {
		s.ObjectsError = err.Error()
	}
	for _, node := range lab.Nodes {
		s.Disks = append(s.Disks, lookDisk(node.N, node.DataDir))
	}
	if _, err := os.Stat(lab.LocalDir()); err == nil {
		s.Disks = append(s.Disks, lookDisk(0, lab.LocalDir()))
	}
	return s, ctx.Err()
}

func (s *Survey) lookEtcd(ctx context.Context, lab *state.Lab) error {
	client, err := access.Etcd(ctx, lab)
	if err != nil {
		return err
	}
	defer client.Close()
	var kvs []pair
	revision, err := EachKey(ctx, client, func(kv Key) error {
		kvs = append(kvs, pair{string(kv.Key), kv.Value})
		return nil
	})
	if err != nil {
		return err
	}
	s.EtcdRevision = revision
	s.Metadata, err = readMetadata(kvs)
	return err
}

type pair struct {
	key   string
	value []byte
}

var (
	instanceKey = regexp.MustCompile(`^(.+)/(?:instance|version|logidgen|quorumidgen)$`)
	contentKey  = regexp.MustCompile(`^(.+?)/(?:logs|logs-deleted|readers|marking|cleaning)/`)
)

// metadataPrefix returns the woodpecker prefix that key lies under. Milvus has
// keys of the same names below its own meta root.
func metadataPrefix(key string) (string, bool) {
	for _, re := range []*regexp.Regexp{instanceKey, contentKey} {
		if m := re.FindStringSubmatch(key); m != nil && !strings.Contains(key, "/meta/") {
			return m[1], true
		}
	}
	return "", false
}

func readMetadata(kvs []pair) ([]Metadata, error) {
	byPrefix := map[string][]pair{}
	for _, kv := range kvs {
		if prefix, ok := metadataPrefix(kv.key); ok {
			byPrefix[prefix] = append(byPrefix[prefix], kv)
		}
	}
	var out []Metadata
	var errs []error
	for prefix, kvs := range byPrefix {
		m, err := readInstance(prefix, kvs)
		errs = append(errs, err)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Metadata) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return out, errors.Join(errs...)
}

func readInstance(prefix string, kvs []pair) (Metadata, error) {
	keys := meta.NewKeyBuilder(prefix)
	m := Metadata{Prefix: prefix}
	live, parked := map[string]*Log{}, map[string]*Log{}
	var errs []error
	for _, kv := range kvs {
		switch {
		case strings.HasPrefix(kv.key, keys.LogsPrefix()+"/"):
			errs = append(errs, readLogKey(live, strings.TrimPrefix(kv.key, keys.LogsPrefix()+"/"), kv, &m.OtherKeys))
		case strings.HasPrefix(kv.key, keys.LogDeletedPrefix()+"/"):
			errs = append(errs, readLogKey(parked, strings.TrimPrefix(kv.key, keys.LogDeletedPrefix()+"/"), kv, &m.OtherKeys))
		case kv.key == keys.LogIdGeneratorKey():
			n, err := strconv.ParseInt(string(kv.value), 10, 64)
			errs = append(errs, err)
			m.Counter = &n
		}
	}
	for _, name := range layout.InstanceKeyNames() {
		if slices.ContainsFunc(kvs, func(kv pair) bool { return kv.key == layout.InstanceKeys(keys)[name] }) {
			m.InstanceKeys = append(m.InstanceKeys, name)
		}
	}
	for _, kv := range kvs {
		for _, other := range []string{keys.ReaderTempInfoPrefix(), keys.SegmentCompactedNotifyStatusPrefix(), keys.SegmentCleanupStatusPrefix()} {
			if strings.HasPrefix(kv.key, other+"/") {
				m.OtherKeys++
			}
		}
	}
	m.Logs, m.Parked = sorted(live), sorted(parked)
	if err := errors.Join(errs...); err != nil {
		return m, fmt.Errorf("%s: %w", prefix, err)
	}
	return m, nil
}

// readLogKey reads name, or name/segments/n; anything else is counted as other.
func readLogKey(logs map[string]*Log, rest string, kv pair, other *int) error {
	name, tail, deeper := strings.Cut(rest, "/")
	if deeper && !strings.HasPrefix(tail, "segments/") {
		*other++
		return nil
	}
	log := logs[name]
	if log == nil {
		log = &Log{Name: name}
		logs[name] = log
	}
	if !deeper {
		var m proto.LogMeta
		if err := protobuf.Unmarshal(kv.value, &m); err != nil {
			return fmt.Errorf("%s: %w", kv.key, err)
		}
		log.ID = m.GetLogId()
		return nil
	}
	var m proto.SegmentMetadata
	if err := protobuf.Unmarshal(kv.value, &m); err != nil {
		return fmt.Errorf("%s: %w", kv.key, err)
	}
	log.Segments++
	if m.GetQuorum() == nil {
		log.NoQuorum++
	}
	return nil
}

func sorted(logs map[string]*Log) []Log {
	out := make([]Log, 0, len(logs))
	for _, l := range logs {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Log) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name)) })
	return out
}

func (s *Survey) lookObjects(ctx context.Context, lab *state.Lab) error {
	client, err := access.Objects(lab)
	if err != nil {
		return err
	}
	buckets, err := client.ListBuckets(ctx)
	if err != nil {
		return err
	}
	for _, b := range buckets {
		var objects []minio.ObjectInfo
		for o := range client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{Recursive: true}) {
			if o.Err != nil {
				return fmt.Errorf("bucket %s: %w", b.Name, o.Err)
			}
			objects = append(objects, o)
		}
		s.Objects = append(s.Objects, sortObjects(b.Name, objects)...)
	}
	return nil
}

// sortObjects groups a bucket's objects by WAL root and log. What is no
// woodpecker object belongs to the longest root that it lies under.
func sortObjects(bucket string, objects []minio.ObjectInfo) []ObjectRoot {
	type amounts = map[int64]*LogAmount
	roots := map[string]amounts{}
	var others []minio.ObjectInfo
	for _, o := range objects {
		parsed, ok := layout.ParseObject(o.Key)
		if !ok || !isWALRoot(parsed.Root) {
			others = append(others, o)
			continue
		}
		if roots[parsed.Root] == nil {
			roots[parsed.Root] = amounts{}
		}
		add(roots[parsed.Root], parsed.LogID, o.Size)
	}
	out := map[string]*ObjectRoot{}
	for root, logs := range roots {
		out[root] = &ObjectRoot{Bucket: bucket, Root: root, Logs: flatten(logs)}
	}
	for _, o := range others {
		root := ""
		for candidate := range out {
			if candidate != "" && strings.HasPrefix(o.Key, candidate+"/") && len(candidate) > len(root) {
				root = candidate
			}
		}
		if out[root] == nil {
			out[root] = &ObjectRoot{Bucket: bucket, Root: root}
		}
		out[root].Other++
		out[root].OtherBytes += o.Size
		out[root].OtherKeys = append(out[root].OtherKeys, o.Key)
	}
	list := make([]ObjectRoot, 0, len(out))
	for _, r := range out {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b ObjectRoot) int { return cmp.Compare(a.Root, b.Root) })
	return list
}

// isWALRoot tells Milvus's WAL roots from a copy of one that lies elsewhere.
func isWALRoot(root string) bool { return root == "wp" || strings.HasSuffix(root, "/wp") }

func add(logs map[int64]*LogAmount, id, bytes int64) {
	if logs[id] == nil {
		logs[id] = &LogAmount{ID: id}
	}
	logs[id].Count++
	logs[id].Bytes += bytes
}

func flatten(logs map[int64]*LogAmount) []LogAmount {
	out := make([]LogAmount, 0, len(logs))
	for _, l := range logs {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b LogAmount) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func lookDisk(n int, dir string) Disk {
	d := Disk{N: n}
	owners := map[string]map[int64]*LogAmount{}
	err := EachFile(dir, func(path string, size int64) error {
		if strings.HasPrefix(path, layout.MarkersDir+"/") {
			d.Markers++
			return nil
		}
		if f, ok := layout.ParseNodeFile(path); ok {
			if owners[f.Owner] == nil {
				owners[f.Owner] = map[int64]*LogAmount{}
			}
			add(owners[f.Owner], f.LogID, size)
		}
		return nil
	})
	if err != nil {
		d.Error = err.Error()
	}
	for owner, logs := range owners {
		d.Owners = append(d.Owners, DiskOwner{Owner: owner, Logs: flatten(logs)})
	}
	slices.SortFunc(d.Owners, func(a, b DiskOwner) int { return cmp.Compare(a.Owner, b.Owner) })
	return d
}

// EachFile calls f with the slash-separated path of each file below dir. Files
// that vanish while it walks are passed over: nodes reclaim as they please.
func EachFile(dir string, f func(path string, size int64) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(rel), info.Size())
	})
}

// Key is one key of etcd.
type Key struct {
	Key, Value         []byte
	Create, Mod, Lease int64
	Version            int64
}

// pageSize keeps each answer far below etcd's message limit.
const pageSize = 1000

// EachKey calls f with every key at one revision, and returns the revision.
func EachKey(ctx context.Context, client *clientv3.Client, f func(Key) error) (int64, error) {
	from, revision := "\x00", int64(0)
	for {
		resp, err := client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		if err != nil {
			return 0, fmt.Errorf("etcd: %w", err)
		}
		if revision == 0 {
			revision = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			if err := f(Key{Key: kv.Key, Value: kv.Value, Create: kv.CreateRevision, Mod: kv.ModRevision, Lease: kv.Lease, Version: kv.Version}); err != nil {
				return 0, err
			}
		}
		if !resp.More {
			return revision, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
