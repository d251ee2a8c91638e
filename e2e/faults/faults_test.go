// Package faults puts faults between the built program and each server that it
// talks to, at the start of a run and in the middle of one. Whatever happens, a
// run ends in bounded time, nothing is called done that is not, and once the
// fault is gone the same plan finishes.
//
// It is a module of its own, for the proxy that it uses, and shares no code with
// the program that it drives. With -update it writes docs/faults.md.
package faults

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/faults.md")

// longest is how long a run may take under any fault: the attempts of one request
// to a server that is silent, for each tier, and what a stop needs after that.
const longest = 100 * time.Second

// cell is one field of the matrix.
type cell struct {
	server, fault, moment string
	inject                func(t *testing.T, i *instance) (heal func())
	// may are the exit codes that are right; 0 only together with an empty WAL.
	may []int
}

func (c cell) String() string { return c.server + ", " + c.fault + ", " + c.moment }

const (
	atStart  = "at the start"
	inMiddle = "in the middle"
)

func TestFaults(t *testing.T) {
	programs := buildPrograms(t)
	table := &table{}
	t.Run("all", func(t *testing.T) {
		group := func(name string, cells []cell, sideBySide bool, flags ...string) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lab := startLab(t, programs, flags...)
				for n, c := range cells {
					t.Run(c.String(), func(t *testing.T) {
						if sideBySide {
							t.Parallel()
						}
						table.add(c, show(t, lab.instance(t, fmt.Sprintf("i%d", n)), c))
					})
				}
			})
		}
		group("network", network(), true, "--reclaim-grace", "2s")
		group("object store", store(), true)
		// What befalls a node or a member befalls every instance: one at a time.
		group("nodes", nodes(), false, "--reclaim-grace", "2s")
		group("members", members(), false, "--etcd-members", "3", "--reclaim-grace", "2s")
	})
	if *update && !t.Failed() {
		table.write(t, "../../docs/faults.md")
	}
}

// show applies the plan under the fault of a cell, then without it.
func show(t *testing.T, i *instance, c cell) outcome {
	var under outcome
	if c.moment == atStart {
		heal := c.inject(t, i)
		under = i.apply(t, nil)
		heal()
	} else {
		var heal func()
		under = i.apply(t, func() { heal = c.inject(t, i) })
		if heal == nil {
			t.Fatalf("the run ended before its middle:\n%s", under.events)
		}
		heal()
	}
	if under.took > longest {
		t.Errorf("it took %s, more than %s", under.took, longest)
	}
	if !contains(c.may, under.exit) {
		t.Errorf("exit code %d, want one of %v:\n%s", under.exit, c.may, under.events)
	}
	if empty := i.empty(); under.exit == 0 && empty != nil {
		t.Errorf("called done and is not: %v", empty)
	}
	if under.exit != 0 && strings.Contains(under.events, `"outcome":"done"`) {
		t.Errorf("called done with exit code %d", under.exit)
	}
	after := i.apply(t, nil)
	if after.exit != 0 {
		t.Fatalf("without the fault: exit code %d\n%s", after.exit, after.events)
	}
	if empty := i.empty(); empty != nil {
		t.Errorf("without the fault, called done and is not: %v", empty)
	}
	return under
}

func contains(codes []int, code int) bool {
	for _, c := range codes {
		if c == code {
			return true
		}
	}
	return false
}

// table is what docs/faults.md shows.
type table struct {
	mu   sync.Mutex
	rows map[cellKey]outcome
	keys []cellKey
}

type cellKey struct{ server, fault, moment string }

func (tb *table) add(c cell, o outcome) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.rows == nil {
		tb.rows = map[cellKey]outcome{}
	}
	key := cellKey{c.server, c.fault, c.moment}
	if _, known := tb.rows[key]; !known {
		tb.keys = append(tb.keys, key)
	}
	tb.rows[key] = o
}

func (tb *table) write(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(heading)
	for _, c := range everything() {
		o, seen := tb.rows[cellKey{c.server, c.fault, c.moment}]
		if !seen {
			t.Fatalf("no outcome of %s", c)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %.0f s |\n", c.server, c.fault, c.moment, o.exit, o.said, o.took.Seconds())
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const heading = `# Faults

Each row is a run of the built program against real servers with one fault between them, as the last run of the fault matrix saw it (` + "`go test -C e2e/faults . -update`" + ` writes this page). Each also proves that the run ended in bounded time, that nothing was called done that the lab did not find empty, and that the same plan finished once the fault was gone. Attempts end after 3 s here; a plan chooses with ` + "`attemptTimeout`" + `.

| between runbook and | fault | when | exit code | what it said | took |
|---|---|---|---|---|---|
`

func everything() []cell {
	var all []cell
	for _, group := range [][]cell{network(), store(), nodes(), members()} {
		all = append(all, group...)
	}
	return all
}
