package main

import (
	"strings"
	"testing"
)

func TestObjectsAreCountedByOwnerAndLog(t *testing.T) {
	var got tally
	for _, key := range []string{
		"files/wp/3/0/footer.blk",
		"files/wp/3/1/m_0.blk",
		"files/wp/12/0/0.blk",
		"files/wp/notes.txt",
		"files/wp/12/x/0.blk",
		"files/wp/12/0/",
		"files/wp2/3/0/0.blk",
		"files/insert_log/1/2/3/4",
	} {
		got.addObject(key, "files/wp/", 3)
	}
	want := tally{objects: 3, objectsUpTo: 2, lowestObjectLog: 3, highestObjectLog: 12, foreign: 3, other: 2}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLogsAreCountedUpToAnID(t *testing.T) {
	var got tally
	for _, id := range []int64{7, 5, 9} {
		got.addLog(id, 7)
	}
	want := tally{logs: 3, logsUpTo: 2, lowest: 5, highest: 9}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheTallyIsPrintedAsShellCanReadIt(t *testing.T) {
	var out strings.Builder
	(&tally{counter: "4", logs: 2}).print(&out)
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		name, _, ok := strings.Cut(line, "=")
		if !ok || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("not a key=value line: %q", line)
		}
	}
	if !strings.HasPrefix(out.String(), "counter=4\nlogs=2\n") {
		t.Errorf("got %q", out.String())
	}
}
