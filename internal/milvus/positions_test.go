package milvus

import (
	"encoding/hex"
	"testing"
)

// Encodings as the WALs' own libraries write them (pulsar's from the sources of
// its message id).
func TestTheEarliestPositionOfEachWALInBothEncodings(t *testing.T) {
	for _, tt := range []struct {
		wal       WAL
		raw, text string
	}{
		{Woodpecker, "", ""},
		{Kafka, "0000000000000000", "0"},
		{RocksMQ, "0000000000000000", "0"},
		{Pulsar, "08ffffffffffffffffff0110ffffffffffffffffff0118ffffffffffffffffff0120ffffffffffffffffff013000",
			"CP///////////wEQ////////////ARj///////////8BIP///////////wEwAA=="},
	} {
		t.Run(tt.wal.String(), func(t *testing.T) {
			got, err := Earliest(tt.wal)
			if err != nil {
				t.Fatal(err)
			}
			if hex.EncodeToString(got.Raw) != tt.raw || got.Text != tt.text || got.WAL != tt.wal {
				t.Errorf("%x %q %s", got.Raw, got.Text, got.WAL)
			}
		})
	}
	for _, wal := range []WAL{Unknown, 999, -1} {
		if got, err := Earliest(wal); err == nil {
			t.Errorf("%s: %+v", wal, got)
		}
	}
}

func TestAWALIsCalledTheSameWhereverItIsNamed(t *testing.T) {
	for name, number := range map[string]WAL{"rocksmq": 1, "pulsar": 2, "kafka": 3, "woodpecker": 4} {
		got, err := ParseWAL(name)
		if err != nil || got != number || got.String() != name {
			t.Errorf("%s: %d %s %v", name, got, got, err)
		}
	}
	for _, name := range []string{"", "default", "unknown", "Woodpecker", "woodpecker\n"} {
		if got, err := ParseWAL(name); err == nil {
			t.Errorf("%q is taken for %s", name, got)
		}
	}
}
