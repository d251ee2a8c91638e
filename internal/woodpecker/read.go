package woodpecker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/zilliztech/woodpecker/proto"
	"go.etcd.io/etcd/api/v3/mvccpb"
	pb "google.golang.org/protobuf/proto"
)

// embeddedNode is what an embedded woodpecker records as the node of its
// segments. It is no address: nothing listens there, or something else does.
const embeddedNode = "127.0.0.1:59456"

// Metadata is what etcd holds of one woodpecker, as of one revision.
type Metadata struct {
	Keys    Keys
	Counter int64    // the log id counter; 0 when the key is missing
	Missing []string // instance keys that do not exist
	Logs    []Log    // live logs, then parked ones, each in the order of their keys

	// Headless are segments whose log's own key is gone, so that its id is not known.
	Headless []Log
	// LogIDs are ids that only marking, cleaning or reader records name.
	LogIDs []int64
	// Locked are logs whose writer lock exists and has a lease: a writer lives,
	// or died less than 15 s ago.
	Locked []string

	Total         int64 // keys below the prefix except the instance keys and foreign ones
	Foreign       int64 // keys below the prefix that are not woodpecker's
	ForeignSample []string
	QuorumCounter string // text of that instance key
}

// Log is one live or parked log.
type Log struct {
	Name   string // of a parked log with "-{deletion time in ns}"
	ID     int64
	Parked bool

	Segments   int64
	Compacted  int64     // segments whose data is in the object store
	Stored     int64     // segments that are no longer being written
	NoQuorum   int64     // segments that name no node: written by early versions
	Embedded   int64     // segments written by a woodpecker embedded in Milvus
	Nodes      []Replica // log-store nodes that the quorums name, each address once
	Unreadable []string  // keys of segments that cannot be decoded
}

// Replica is a log-store node as a quorum names it.
type Replica struct {
	Address string // host:port
	ID      string // the node's id; empty in metadata of early versions
}

// Entries walks etcd keys in order, as of one revision.
type Entries interface {
	Entries(ctx context.Context, prefix string) iter.Seq2[*mvccpb.KeyValue, error]
}

const sampleSize = 10

// ErrMalformed says that a value is not what woodpecker writes there.
var ErrMalformed = errors.New("not in woodpecker's form")

// Read reads the metadata below a prefix. A LogMeta or a counter that cannot be
// decoded is an error: without them it is not known what there is.
func Read(ctx context.Context, etcd Entries, prefix string) (*Metadata, error) {
	r := reader{md: &Metadata{Keys: NewKeys(prefix)}, logs: map[logName]*Log{}, ids: map[int64]bool{}}
	r.md.Missing = r.md.Keys.InstanceKeys()
	for kv, err := range etcd.Entries(ctx, r.md.Keys.Root()) {
		if err != nil {
			return nil, err
		}
		if err := r.add(kv); err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
	}
	return r.finish(), nil
}

type reader struct {
	md   *Metadata
	logs map[logName]*Log
	ids  map[int64]bool // named by records that are kept by id
}

type logName struct {
	name   string
	parked bool
}

func (r *reader) add(kv *mvccpb.KeyValue) error {
	key := r.md.Keys.Parse(string(kv.Key))
	switch key.Kind {
	case Foreign:
		r.md.Foreign++
		if len(r.md.ForeignSample) < sampleSize {
			r.md.ForeignSample = append(r.md.ForeignSample, string(kv.Key))
		}
		return nil
	case InstanceKey:
		return r.instance(string(kv.Key), string(kv.Value))
	}
	r.md.Total++
	switch key.Kind {
	case LogKey, ParkedKey:
		return r.meta(r.log(key.Log, key.Kind == ParkedKey), kv.Value)
	case SegmentKey, ParkedSegment:
		r.log(key.Log, key.Kind == ParkedSegment).addSegment(string(kv.Key), kv.Value)
	case LockKey:
		if kv.Lease != 0 && !slices.Contains(r.md.Locked, key.Log) {
			r.md.Locked = append(r.md.Locked, key.Log)
		}
	case ByLogID:
		r.ids[key.LogID] = true
	}
	return nil
}

func (r *reader) instance(key, value string) error {
	keys := r.md.Keys
	r.md.Missing = slices.DeleteFunc(r.md.Missing, func(missing string) bool { return missing == key })
	switch key {
	case keys.QuorumCounter():
		r.md.QuorumCounter = value
	case keys.LogIDCounter():
		n, ok := parseNumber(value)
		if !ok {
			return fmt.Errorf("%w: the log id counter is %q", ErrMalformed, value)
		}
		r.md.Counter = n
	}
	return nil
}

func (r *reader) log(name string, parked bool) *Log {
	key := logName{name, parked}
	if r.logs[key] == nil {
		r.logs[key] = &Log{Name: name, Parked: parked}
	}
	return r.logs[key]
}

func (r *reader) meta(log *Log, value []byte) error {
	var decoded proto.LogMeta
	if err := pb.Unmarshal(value, &decoded); err != nil {
		return fmt.Errorf("%w: no LogMeta: %w", ErrMalformed, err)
	}
	if log.ID = decoded.GetLogId(); log.ID < 1 {
		return fmt.Errorf("%w: a LogMeta with log id %d, and ids begin at 1", ErrMalformed, log.ID)
	}
	return nil
}

// finish sorts what was read; segments without a LogMeta go to Headless.
func (r *reader) finish() *Metadata {
	for _, log := range r.logs {
		if log.ID == 0 {
			r.md.Headless = append(r.md.Headless, *log)
			continue
		}
		r.md.Logs = append(r.md.Logs, *log)
		delete(r.ids, log.ID)
	}
	order := func(a, b Log) int {
		if a.Parked != b.Parked {
			if a.Parked {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	}
	slices.SortFunc(r.md.Logs, order)
	slices.SortFunc(r.md.Headless, order)
	r.md.LogIDs = slices.Sorted(maps.Keys(r.ids))
	return r.md
}

func (l *Log) addSegment(key string, value []byte) {
	l.Segments++
	var segment proto.SegmentMetadata
	if err := pb.Unmarshal(value, &segment); err != nil {
		l.Unreadable = append(l.Unreadable, key)
		l.NoQuorum++
		return
	}
	if segment.GetState() != proto.SegmentState_Active {
		l.Stored++
	}
	if segment.GetState() == proto.SegmentState_Sealed {
		l.Compacted++
	}
	switch replicas := replicasOf(segment.GetQuorum()); {
	case isEmbedded(segment.GetQuorum()):
		l.Embedded++
	case len(replicas) == 0:
		l.NoQuorum++
	default:
		for _, replica := range replicas {
			l.addNode(replica)
		}
	}
}

func (l *Log) addNode(replica Replica) {
	for i, known := range l.Nodes {
		if known.Address == replica.Address {
			if known.ID == "" {
				l.Nodes[i].ID = replica.ID
			}
			return
		}
	}
	l.Nodes = append(l.Nodes, replica)
}

// replicasOf lists the nodes that can be called. Nodes and Replicas name the
// same ones; early versions wrote only Nodes, or no quorum at all, and clients
// then fell back to 127.0.0.1, which is never a log-store node.
func replicasOf(quorum *proto.QuorumInfo) []Replica {
	ids := map[string]string{}
	addresses := slices.Clone(quorum.GetNodes())
	for _, replica := range quorum.GetReplicas() {
		ids[replica.GetEndpoint()] = replica.GetNodeId()
		if !slices.Contains(addresses, replica.GetEndpoint()) {
			addresses = append(addresses, replica.GetEndpoint())
		}
	}
	var replicas []Replica
	for _, address := range addresses {
		if IsAddress(address) {
			replicas = append(replicas, Replica{Address: address, ID: ids[address]})
		}
	}
	return replicas
}

func isEmbedded(quorum *proto.QuorumInfo) bool {
	return quorum.GetId() == -1 || slices.Contains(quorum.GetNodes(), embeddedNode)
}

// IsAddress reports whether text can be a log-store node: host:port, and not the
// placeholder of an embedded woodpecker.
func IsAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || text == embeddedNode {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
