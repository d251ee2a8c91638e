package milvus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testMeta = "by-dev/meta"

func TestEachFamilyReadsTheKeysThatMilvusWrites(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  string
		want Key
	}{
		{"a collection", "root-coord/database/collection-info/1/461650000000000001", Key{Family: Collections, DB: 1, Collection: 461650000000000001}},
		{"a collection from before databases", "root-coord/collection/7", Key{Family: LegacyCollections, Collection: 7}},
		{"a segment", "datacoord-meta/s/1/2/3", Key{Family: Segments, Collection: 1, Partition: 2, Segment: 3}},
		{"a channel checkpoint", "datacoord-meta/channel-cp/by-dev-rootcoord-dml_0_1v0", Key{Family: ChannelCheckpoints, VChannel: "by-dev-rootcoord-dml_0_1v0"}},
		{"a consume checkpoint", "streamingnode-meta/wal/by-dev-rootcoord-dml_10/consume-checkpoint", Key{Family: ConsumeCheckpoints, PChannel: "by-dev-rootcoord-dml_10"}},
		{"a segment assignment", "streamingnode-meta/wal/p/segment-assign/3", Key{Family: SegmentAssignments, PChannel: "p", Segment: 3}},
		{"a query target", "queryCoord-Collection-Target/1", Key{Family: QueryTargets, Collection: 1}},
		{"a broadcast", "streamingcoord-meta/broadcast-task/9", Key{Family: Broadcasts, ID: 9}},
		{"a physical channel", "streamingcoord-meta/pchannel/p", Key{Family: PChannelMetas, PChannel: "p"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			full := testMeta + "/" + tt.key
			got, err := tt.want.Family.ParseKey(testMeta, full)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Path(testMeta) != full {
				t.Errorf("spelled back as %s", got.Path(testMeta))
			}
		})
	}
}

func TestAKeyThatDoesNotFitIsNobodys(t *testing.T) {
	for _, tt := range []struct {
		name   string
		family Family
		key    string
	}{
		{"a neighbour whose name starts alike", LegacyCollections, "by-dev/meta/root-coord/collection-alias/x"},
		{"another instance whose root starts alike", Segments, "by-dev/meta2/datacoord-meta/s/1/2/3"},
		{"a part too few", Segments, "by-dev/meta/datacoord-meta/s/1/2"},
		{"a part too many", Segments, "by-dev/meta/datacoord-meta/s/1/2/3/4"},
		{"a word for a number", Segments, "by-dev/meta/datacoord-meta/s/1/2/x"},
		{"a sign", Segments, "by-dev/meta/datacoord-meta/s/1/2/+3"},
		{"a negative number", Segments, "by-dev/meta/datacoord-meta/s/1/2/-3"},
		{"a leading zero", Segments, "by-dev/meta/datacoord-meta/s/1/2/03"},
		{"more digits than a number has", Segments, "by-dev/meta/datacoord-meta/s/1/2/99999999999999999999"},
		{"an empty part", Collections, "by-dev/meta/root-coord/database/collection-info//1"},
		{"an empty name", ChannelCheckpoints, "by-dev/meta/datacoord-meta/channel-cp/"},
		{"a path below a channel", ChannelCheckpoints, "by-dev/meta/datacoord-meta/channel-cp/a/b"},
		{"another directory of the channel", ConsumeCheckpoints, "by-dev/meta/streamingnode-meta/wal/p/vchannel"},
		{"a path below the checkpoint", ConsumeCheckpoints, "by-dev/meta/streamingnode-meta/wal/p/consume-checkpoint/x"},
		{"the prefix itself", Segments, "by-dev/meta/datacoord-meta/s/"},
		{"a key of 64 KiB", Segments, "by-dev/meta/datacoord-meta/s/1/2/" + strings.Repeat("9", 64<<10)},
		{"nothing", Segments, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := tt.family.ParseKey(testMeta, tt.key); err == nil {
				t.Errorf("read as %+v", got)
			}
		})
	}
}

func TestPrefixesEndInASlash(t *testing.T) {
	for family := Family(0); family < families; family++ {
		if prefix := family.Prefix(testMeta); !strings.HasSuffix(prefix, "/") {
			t.Errorf("%s: %s", family, prefix)
		}
	}
}

func TestADirectoryOfAWALChannelIsKnownOrNot(t *testing.T) {
	for _, tt := range []struct {
		key, pchannel, dir string
		known              bool
	}{
		{"p/consume-checkpoint", "p", "consume-checkpoint", true},
		{"p/vchannel/v/schema/7", "p", "vchannel", true},
		{"p/salvage-checkpoint/c", "p", "salvage-checkpoint", true},
		{"p/recovery-control/x", "p", "recovery-control", false},
		{"p/vchannels/x", "p", "vchannels", false},
		{"p", "p", "", false},
		{"/x", "", "", false},
	} {
		pchannel, dir, known := ParseWALKey(testMeta, WALPrefix(testMeta)+tt.key)
		if pchannel != tt.pchannel || dir != tt.dir || known != tt.known {
			t.Errorf("%s: %q %q %v", tt.key, pchannel, dir, known)
		}
	}
}

func TestThePhysicalChannelOfAVirtualOne(t *testing.T) {
	for channel, want := range map[string]string{
		"by-dev-rootcoord-dml_0_461650000000000001v0": "by-dev-rootcoord-dml_0",
		"by-dev-rootcoord-dml_10_1v1":                 "by-dev-rootcoord-dml_10",
		"by-dev-rootcoord-dml_0_vcchan":               "by-dev-rootcoord-dml_0",
		"by-dev-rootcoord-dml_0":                      "by-dev-rootcoord-dml_0",
		"nothing":                                     "nothing",
		"":                                            "",
	} {
		if got := PhysicalChannel(channel); got != want {
			t.Errorf("%s: %s, want %s", channel, got, want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(uint8(Segments), "by-dev/meta/datacoord-meta/s/1/2/3")
	f.Add(uint8(Collections), "by-dev/meta/root-coord/database/collection-info/1/2")
	f.Add(uint8(ChannelCheckpoints), "by-dev/meta/datacoord-meta/channel-cp/\xff")
	f.Add(uint8(ConsumeCheckpoints), "by-dev/meta/streamingnode-meta/wal/p/consume-checkpoint")
	f.Fuzz(func(t *testing.T, family uint8, key string) {
		of := Family(family % families)
		if parsed, err := of.ParseKey(testMeta, key); err == nil && parsed.Path(testMeta) != key {
			t.Errorf("%q is spelled back as %q", key, parsed.Path(testMeta))
		}
		ParseWALKey(testMeta, key)
		PhysicalChannel(key)
	})
}
