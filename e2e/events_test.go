package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// eventHas compares one value of an event that `-o json` printed. PATH goes
// through objects by name and arrays by number; what is not there is "absent";
// objects and arrays compare as compact JSON.
func eventHas(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: event FILE NAME[:STEP] PATH VALUE")
	}
	event, err := lastEvent(ts.ReadFile(args[0]), args[1])
	ts.Check(err)
	got := text(at(event, args[2]))
	if (got == args[3]) == neg {
		ts.Fatalf("%s of %s is %s", args[2], args[1], got)
	}
}

// lastEvent finds the last event of this name, and of this step if one is given.
func lastEvent(lines, name string) (any, error) {
	name, step, _ := strings.Cut(name, ":")
	var last any
	decoder := json.NewDecoder(strings.NewReader(lines))
	decoder.UseNumber()
	for {
		var event any
		if err := decoder.Decode(&event); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("not a stream of events: %w", err)
		}
		if text(at(event, "event")) == name && (step == "" || text(at(event, "step.id")) == step) {
			last = event
		}
	}
	if last == nil {
		return nil, fmt.Errorf("no event %s %s", name, step)
	}
	return last, nil
}

// absent is what lies at a path that does not exist.
type absent struct{}

func at(value any, path string) any {
	for _, name := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			found, ok := v[name]
			if !ok {
				return absent{}
			}
			value = found
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(v) {
				return absent{}
			}
			value = v[n]
		default:
			return absent{}
		}
	}
	return value
}

func text(value any) string {
	switch v := value.(type) {
	case absent:
		return "absent"
	case string:
		return v
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// status is what `runbook-lab status -o json` counts, as far as it is compared.
type status struct {
	Metadata []struct {
		Prefix       string
		Counter      int64
		Logs, Parked []struct{ Segments int64 }
	}
	Objects []struct {
		Bucket, Root string
		Logs         []amount
	}
	Disks []struct {
		N      int
		Owners []struct {
			Owner string
			Logs  []amount
		}
	}
}

type amount struct{ ID, Count, Bytes int64 }

// removed is what both sides say of one instance.
type removed struct {
	Counter, Logs, ParkedLogs, Segments int64
	Objects, ObjectBytes                int64
	LocalFiles, LocalBytes              int64
}

// counted compares what step wal says it removed (the last event of its end, or
// of its preview) with what the lab counted before, tier by tier. The lab shares
// no code with runbook.
func counted(ts *testscript.TestScript, neg bool, args []string) {
	f := flag.NewFlagSet("counted", flag.ContinueOnError)
	prefix := f.String("prefix", "by-dev/woodpecker", "")
	bucket := f.String("bucket", "a-bucket", "")
	root := f.String("root", "files/wp", "")
	if neg || len(args) < 2 || f.Parse(args[2:]) != nil {
		ts.Fatalf("usage: counted STATUS EVENTS [-prefix P] [-bucket B] [-root R]")
	}
	var before status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &before))
	event, err := lastEvent(ts.ReadFile(args[1]), "step.done:wal")
	if err != nil {
		event, err = lastEvent(ts.ReadFile(args[1]), "step.previewed:wal")
	}
	ts.Check(err)
	if diff := cmp.Diff(before.of(*prefix, *bucket, *root), said(event)); diff != "" {
		ts.Fatalf("the lab counted (-), runbook removed (+):\n%s", diff)
	}
}

// of counts one instance. Files of local storage have no bucket in their path.
func (s status) of(prefix, bucket, root string) removed {
	var r removed
	for _, m := range s.Metadata {
		if m.Prefix != prefix {
			continue
		}
		r.Counter, r.Logs, r.ParkedLogs = m.Counter, int64(len(m.Logs)), int64(len(m.Parked))
		for _, l := range append(m.Logs, m.Parked...) {
			r.Segments += l.Segments
		}
	}
	for _, o := range s.Objects {
		if o.Bucket == bucket && o.Root == root {
			r.Objects, r.ObjectBytes = sum(o.Logs)
		}
	}
	for _, d := range s.Disks {
		for _, o := range d.Owners {
			if d.N == 0 && o.Owner == root {
				r.LocalFiles, r.LocalBytes = sum(o.Logs)
			}
		}
	}
	return r
}

func sum(logs []amount) (count, bytes int64) {
	for _, l := range logs {
		count += l.Count
		bytes += l.Bytes
	}
	return count, bytes
}

func said(event any) removed {
	number := func(path string) int64 {
		n, err := strconv.ParseInt(text(at(event, "outputs."+path)), 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	return removed{
		Counter: number("logIdCounter.before"), Logs: number("metadata.logs"), ParkedLogs: number("metadata.parkedLogs"), Segments: number("metadata.segments"),
		Objects: number("objects.removed"), ObjectBytes: number("objects.bytes"),
		LocalFiles: number("local.files"), LocalBytes: number("local.bytes"),
	}
}
