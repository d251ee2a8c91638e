package milvus

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

type rewriter func(Position, []byte) ([]byte, bool, error)

func collection(p Position, value []byte) ([]byte, bool, error) {
	return p.RewriteCollection(value, func(string) bool { return true })
}

// onlyP1 leaves out every channel but p1.
func onlyP1(p Position, value []byte) ([]byte, bool, error) {
	return p.RewriteCollection(value, func(channel string) bool { return channel == "p1" })
}

func TestARewriteChangesThePositionAndNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name    string
		to      WAL
		rewrite rewriter
		in, out string // hex; out empty: already there
	}{
		// msgpb.MsgPosition
		{"a channel checkpoint gains its WAL in the place of field 5", Woodpecker, Position.RewriteChannelCheckpoint,
			"0a0263681204080510111a016720072802", "0a0263681a016720072804"},
		{"a channel checkpoint gains its id in the place of field 2", Kafka, Position.RewriteChannelCheckpoint,
			"0a0263681a01672007", "0a02636812080000000000000000" + "1a016720072803"},
		{"woodpecker's earliest is nothing but the WAL's name", Woodpecker, Position.RewriteChannelCheckpoint,
			"0a02636820072804", ""},
		{"an explicit empty id is an empty id", Woodpecker, Position.RewriteChannelCheckpoint,
			"0a026368120020072804", ""},
		{"an empty id without a WAL's name is not woodpecker's earliest", Woodpecker, Position.RewriteChannelCheckpoint,
			"0a0263682007", "0a02636820072804"},
		{"a field that nobody knows stays where it is", Woodpecker, Position.RewriteChannelCheckpoint,
			"0a026368" + "120100" + "1a0167" + "2802" + "92030178", "0a026368" + "1a0167" + "2804" + "92030178"},
		{"a field written twice is written once, with its last value replaced", RocksMQ, Position.RewriteChannelCheckpoint,
			"2802" + "120101" + "2803" + "120102", "2801" + "12080000000000000000"},
		{"a field written twice at the target already is left alone", Woodpecker, Position.RewriteChannelCheckpoint,
			"2802" + "0a0163" + "2804", ""},

		// datapb.SegmentInfo
		{"a segment's positions change in place", Woodpecker, Position.RewriteSegment,
			"0801100230044a0e0a01761201012003280292030178f80108", "0801100230044a0b0a01762003280492030178f80108"},
		{"a segment without positions gets none", Woodpecker, Position.RewriteSegment, "080110023004", ""},
		{"an empty position is a position", Woodpecker, Position.RewriteSegment, "08014a005200", "08014a0228045202" + "2804"},
		{"one position to change, one there already", Woodpecker, Position.RewriteSegment,
			"0801" + "4a022804" + "5205" + "120101" + "2802", "0801" + "4a022804" + "5202" + "2804"},
		{"a position in two pieces is one position", Kafka, Position.RewriteSegment,
			"0801" + "4a030a0176" + "3004" + "4a022007", "0801" + "4a11" + "0a0176" + "12080000000000000000" + "2007" + "2803" + "3004"},

		// streamingpb.WALCheckpoint
		{"a consume checkpoint loses a pending switch and keeps what is newer", Woodpecker, Position.RewriteConsumeCheckpoint,
			"0a070a0341414110021007180132020804382a", "0a02100410071801382a"},
		{"a pending switch alone is reason enough", Woodpecker, Position.RewriteConsumeCheckpoint,
			"0a021004100718013200", "0a02100410071801"},
		{"a consume checkpoint at its target", Woodpecker, Position.RewriteConsumeCheckpoint, "0a02100410071801", ""},
		{"a missing message id is added", Kafka, Position.RewriteConsumeCheckpoint, "10071801", "0a050a0130100310071801"},
		{"a message id keeps fields that nobody knows", RocksMQ, Position.RewriteConsumeCheckpoint,
			"0a07" + "0a0161" + "1002" + "1805", "0a07" + "0a0130" + "1001" + "1805"},

		// etcdpb.CollectionInfo
		{"start positions lose their ids for woodpecker", Woodpecker, collection,
			"0809" + "5a07" + "0a02" + "7030" + "120101" + "5a04" + "0a027031", "08095a040a0270305a040a027031"},
		{"start positions of other channels stay", Kafka, onlyP1,
			"0809" + "5a070a027030120101" + "5a070a027031120101" + "7801",
			"0809" + "5a070a027030120101" + "5a0e0a02703112080000000000000000" + "7801"},
		{"a collection without start positions", Kafka, collection, "0809", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := mustHex(t, tt.in)
			to, err := Earliest(tt.to)
			if err != nil {
				t.Fatal(err)
			}
			got, changed, err := tt.rewrite(to, in)
			if err != nil {
				t.Fatal(err)
			}
			want := mustHex(t, tt.out)
			if tt.out == "" {
				want = in
			}
			if changed != (tt.out != "") || string(got) != string(want) {
				t.Errorf("changed %v\n got %x\nwant %x", changed, got, want)
			}
			if _, again, err := tt.rewrite(to, got); again || err != nil {
				t.Errorf("a second rewrite changed it again (%v)", err)
			}
		})
	}
}

func TestAValueThatCannotBeReadIsLeftAlone(t *testing.T) {
	rewriters := map[string]rewriter{
		"collection": collection, "segment": Position.RewriteSegment,
		"channel checkpoint": Position.RewriteChannelCheckpoint, "consume checkpoint": Position.RewriteConsumeCheckpoint,
	}
	for _, tt := range []struct {
		name, value string
		of          string
		want        error
	}{
		{"a tombstone", "\xe2\x9b\xbc", "", ErrTombstone},
		{"nothing", "", "", ErrEmpty},
		{"half a tag", "\x80", "", ErrCorrupt},
		{"a length beyond the end", "\x0a\x05ab", "", ErrCorrupt},
		{"field number 0", "\x02\x00", "", ErrCorrupt},
		{"a group without an end", "\x0b\x08\x01", "", ErrCorrupt},
		{"text", "{\"json\": 1}", "", ErrCorrupt},
		{"a position that is a number", "\x48\x01", "segment", ErrCorrupt},
		{"a position that does not parse", "\x4a\x01\x80", "segment", ErrCorrupt},
		{"a WAL's name that is text", "\x2a\x01a", "channel checkpoint", ErrCorrupt},
		{"a start position that does not parse", "\x5a\x01\x80", "collection", ErrCorrupt},
		{"a channel that is not UTF-8", "\x5a\x03\x0a\x01\xff", "collection", ErrCorrupt},
		{"a message id that is not UTF-8", "\x0a\x03\x0a\x01\xff", "consume checkpoint", ErrCorrupt},
	} {
		for name, rewrite := range rewriters {
			if tt.of != "" && tt.of != name {
				continue
			}
			t.Run(tt.name+" as a "+name, func(t *testing.T) {
				to, _ := Earliest(Pulsar)
				got, changed, err := rewrite(to, []byte(tt.value))
				if !errors.Is(err, tt.want) || changed || got != nil && string(got) != tt.value {
					t.Errorf("%x changed %v: %v", got, changed, err)
				}
			})
		}
	}
}

func TestTheMarkerOfADroppedChannelIsNoPosition(t *testing.T) {
	dropped := protowire.AppendVarint([]byte("\x0a\x01v\x20"), 1<<64-1)
	got, err := ReadChannelCheckpoint(dropped)
	if err != nil || !got.Dropped {
		t.Errorf("%+v %v", got, err)
	}
	for name, value := range map[string]string{
		"a position with that timestamp": string(dropped) + "\x12\x01\x01",
		"no id and an earlier timestamp": "\x0a\x01v\x20\x07",
	} {
		if got, err := ReadChannelCheckpoint([]byte(value)); err != nil || got.Dropped {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestAConsumeCheckpointTellsOfBranchesAndPendingSwitches(t *testing.T) {
	got, err := ReadConsumeCheckpoint(mustHex(t, "0a070a0341414110021007180232020804382a"))
	if err != nil {
		t.Fatal(err)
	}
	if got.WAL != Pulsar || got.ID != "AAA" || got.TimeTick != 7 || got.Magic != 2 || !got.AlterWAL || len(got.Unknown) != 1 || got.Unknown[0] != 7 {
		t.Errorf("%+v", got)
	}
}

func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{"0801100230044a0e0a01761201012003280292030178f80108", "0a070a0341414110021007180132020804382a",
		"0a0263681204080510111a016720072802", "08095a070a0270301201015a040a027031", "0b08010c4a005200", "e29bbc"} {
		b, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(4))
	}
	rewriters := []rewriter{collection, onlyP1, Position.RewriteSegment, Position.RewriteChannelCheckpoint, Position.RewriteConsumeCheckpoint}
	f.Fuzz(func(t *testing.T, value []byte, wal uint8) {
		to, err := Earliest(WAL(wal%4) + 1)
		if err != nil {
			t.Fatal(err)
		}
		before := string(value)
		for i, rewrite := range rewriters {
			out, changed, err := rewrite(to, value)
			if string(value) != before {
				t.Fatalf("%d wrote into its input", i)
			}
			if err != nil {
				continue
			}
			if !changed && string(out) != before {
				t.Fatalf("%d changed the value and says that it did not", i)
			}
			if len(out) == 0 {
				continue // a value of nothing but a pending switch; never written, see the step
			}
			if again, changed, err := rewrite(to, out); err != nil || changed || string(again) != string(out) {
				t.Fatalf("%d is not stable: %x, then %x (%v)", i, out, again, err)
			}
		}
		ReadCollection(value)
		ReadSegment(value)
		ReadChannelCheckpoint(value)
		ReadConsumeCheckpoint(value)
		ReadBroadcast(value)
	})
}

func mustHex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
