package milvus

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write what the rewrites make of the values before")

// The values before are made from Milvus's own messages, randomly filled, and what
// is made of them here is judged with those messages: both in e2e/lab, in the test
// of the same name of package milvusfixture.
func TestProofThatRewritesAreWhatMilvusWouldHaveWritten(t *testing.T) {
	type proof struct {
		Kind   string `json:"kind"`
		Target string `json:"target"`
		Before string `json:"before"`
		After  string `json:"after"`
	}
	const path = "testdata/rewrites.jsonl"
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rewriters := map[string]rewriter{
		"collection": collection, "segment": Position.RewriteSegment,
		"channel checkpoint": Position.RewriteChannelCheckpoint, "consume checkpoint": Position.RewriteConsumeCheckpoint,
	}
	var proofs []proof
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var p proof
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		wal, err := ParseWAL(p.Target)
		if err != nil {
			t.Fatal(err)
		}
		to, err := Earliest(wal)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := rewriters[p.Kind](to, mustHex(t, p.Before))
		if err != nil {
			t.Fatalf("line %d: %v", len(proofs)+1, err)
		}
		if !*update && hex.EncodeToString(got) != p.After {
			t.Errorf("line %d, %s to %s:\n got %x\nwant %s", len(proofs)+1, p.Kind, p.Target, got, p.After)
		}
		p.After = hex.EncodeToString(got)
		proofs = append(proofs, p)
	}
	if err := lines.Err(); err != nil || len(proofs) == 0 {
		t.Fatalf("%d lines: %v", len(proofs), err)
	}
	if !*update {
		return
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, p := range proofs {
		if err := json.NewEncoder(out).Encode(p); err != nil {
			t.Fatal(err)
		}
	}
}
