package milvus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Family is one kind of key below {meta}: those that hold positions in the WAL,
// those that a change of WAL makes stale, and those that decide whether one may
// be made.
type Family int

// The families, with the component that writes them (Milvus 2.6 and 3.0).
const (
	Collections        Family = iota // rootcoord, etcdpb.CollectionInfo
	LegacyCollections                // rootcoord before databases existed, the same message
	Segments                         // datacoord, datapb.SegmentInfo
	ChannelCheckpoints               // datacoord, msgpb.MsgPosition
	ConsumeCheckpoints               // streamingnode, streamingpb.WALCheckpoint
	SegmentAssignments               // streamingnode, streamingpb.SegmentAssignmentMeta
	QueryTargets                     // querycoord, zstd of querypb.CollectionTarget
	Broadcasts                       // streamingcoord, streamingpb.BroadcastTask
	PChannelMetas                    // streamingcoord, streamingpb.PChannelMeta

	families = iota
)

// layouts spells each family's keys: a fixed prefix, then one name a path
// element. What {name} stands for is Key's field of that name.
var layouts = [families]struct{ title, prefix, rest string }{
	Collections:        {"collections", "root-coord/database/collection-info/", "{db}/{collection}"},
	LegacyCollections:  {"collections (legacy keys)", "root-coord/collection/", "{collection}"},
	Segments:           {"segments", "datacoord-meta/s/", "{collection}/{partition}/{segment}"},
	ChannelCheckpoints: {"channel checkpoints", "datacoord-meta/channel-cp/", "{vchannel}"},
	ConsumeCheckpoints: {"consume checkpoints", walPrefix, "{pchannel}/" + ConsumeCheckpointDir},
	SegmentAssignments: {"segment assignments", walPrefix, "{pchannel}/" + SegmentAssignDir + "/{segment}"},
	QueryTargets:       {"query targets", "queryCoord-Collection-Target/", "{collection}"},
	Broadcasts:         {"broadcast tasks", "streamingcoord-meta/broadcast-task/", "{id}"},
	PChannelMetas:      {"physical channels", "streamingcoord-meta/pchannel/", "{pchannel}"},
}

// The directories that streamingnode keeps for each physical channel.
const (
	walPrefix            = "streamingnode-meta/wal/"
	ConsumeCheckpointDir = "consume-checkpoint"
	SegmentAssignDir     = "segment-assign"
)

// knownWALDirs are the directories of {meta}/streamingnode-meta/wal/{pchannel}/
// whose contents are understood. Branches of Milvus add others, some of which
// hold message ids.
var knownWALDirs = []string{ConsumeCheckpointDir, SegmentAssignDir, "vchannel", "salvage-checkpoint"}

// String is the family's name as people read it.
func (f Family) String() string { return layouts[f].title }

// Prefix is where the family's keys are. It ends in a slash, so that a scan
// never meets a neighbour: dml_1 is a prefix of dml_10, collection of
// collection-alias.
func (f Family) Prefix(metaRoot string) string { return metaRoot + "/" + layouts[f].prefix }

// Key is one parsed key. Only the fields that its family's layout names are set.
type Key struct {
	Family                             Family
	DB, Collection, Partition, Segment int64
	VChannel, PChannel                 string
	ID                                 int64
}

// Path spells the key below metaRoot.
func (k Key) Path(metaRoot string) string {
	names := strings.Split(layouts[k.Family].rest, "/")
	for i, name := range names {
		switch number, text := k.field(name); {
		case number != nil:
			names[i] = strconv.FormatInt(*number, 10)
		case text != nil:
			names[i] = *text
		}
	}
	return k.Family.Prefix(metaRoot) + strings.Join(names, "/")
}

// field is where the element called name is kept: a number, a text, or neither
// for one that is fixed.
func (k *Key) field(name string) (number *int64, text *string) {
	switch name {
	case "{db}":
		return &k.DB, nil
	case "{collection}":
		return &k.Collection, nil
	case "{partition}":
		return &k.Partition, nil
	case "{segment}":
		return &k.Segment, nil
	case "{id}":
		return &k.ID, nil
	case "{vchannel}":
		return nil, &k.VChannel
	case "{pchannel}":
		return nil, &k.PChannel
	}
	return nil, nil
}

// ParseKey reads a key of one of the families that are read key by key. It is
// strict: the same number of path elements, numbers as Milvus prints them, no
// empty name. An error says what does not fit; the key is then nobody's to touch.
func (f Family) ParseKey(metaRoot, key string) (Key, error) {
	rest, ok := strings.CutPrefix(key, f.Prefix(metaRoot))
	if !ok {
		return Key{}, fmt.Errorf("not below %s", f.Prefix(metaRoot))
	}
	want, got := strings.Split(layouts[f].rest, "/"), strings.Split(rest, "/")
	if len(got) != len(want) {
		return Key{}, fmt.Errorf("want %s after %s, found %d path elements", layouts[f].rest, layouts[f].prefix, len(got))
	}
	parsed := Key{Family: f}
	for i, name := range want {
		if err := parsed.set(name, got[i]); err != nil {
			return Key{}, err
		}
	}
	return parsed, nil
}

func (k *Key) set(name, value string) error {
	number, text := k.field(name)
	switch {
	case number != nil:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != value {
			return fmt.Errorf("want a number for %s, found %q", name, value)
		}
		*number = n
	case value == "":
		return fmt.Errorf("%s is empty", name)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s is not UTF-8", name)
	case text != nil:
		*text = value
	case name != value:
		return fmt.Errorf("want %s, found %q", name, value)
	}
	return nil
}

// WALPrefix is where streamingnode keeps what it knows of its physical channels:
// consume checkpoints, segment assignments, virtual channels.
func WALPrefix(metaRoot string) string { return metaRoot + "/" + walPrefix }

// ParseWALKey says which physical channel and which directory a key below
// WALPrefix belongs to, and whether the contents of that directory are understood.
func ParseWALKey(metaRoot, key string) (pchannel, dir string, known bool) {
	parts := strings.Split(strings.TrimPrefix(key, WALPrefix(metaRoot)), "/")
	if len(parts) < 2 || parts[0] == "" {
		return parts[0], "", false
	}
	return parts[0], parts[1], slices.Contains(knownWALDirs, parts[1])
}

// ReplicateConfigurationKey holds the configuration of a replicated cluster
// (streamingpb.ReplicateConfigurationMeta), with message ids of this cluster's WAL
// in its acknowledged results.
func ReplicateConfigurationKey(metaRoot string) string {
	return metaRoot + "/streamingcoord-meta/replicate-configuration"
}

// ReplicatingPrefix holds a key for each channel that is being replicated to
// another cluster (streamingpb.ReplicatePChannelMeta): a position in this
// cluster's WAL that belongs to a reader outside.
func ReplicatingPrefix(metaRoot string) string {
	return metaRoot + "/streamingcoord-meta/replicating-pchannel/"
}

// CompactionTaskPrefix holds compactions under way (datapb.CompactionTask). Their
// position is used for its timestamp only.
func CompactionTaskPrefix(metaRoot string) string {
	return metaRoot + "/datacoord-meta/compaction-task/"
}

// ChannelWatchPrefix holds what Milvus 2.5 and older left (datapb.ChannelWatchInfo).
// It can name a seek position, which 2.6 does not read.
func ChannelWatchPrefix(metaRoot string) string { return metaRoot + "/channelwatch/" }

// PhysicalChannel is the channel that a virtual one is multiplexed on:
// "by-dev-rootcoord-dml_0" for "by-dev-rootcoord-dml_0_461650000000000001v0". A
// physical channel is its own.
func PhysicalChannel(channel string) string {
	cut := strings.LastIndexByte(channel, '_')
	if cut < 0 || !strings.Contains(channel[cut:], "v") {
		return channel
	}
	return channel[:cut]
}
