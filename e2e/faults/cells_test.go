package faults

import (
	"strconv"
	"testing"
)

// network puts a proxy before etcd or the object store.
func network() []cell {
	var cells []cell
	for _, server := range []string{"etcd", "object store"} {
		for _, f := range []struct {
			name   string
			toxics []string
			may    map[string][]int
		}{
			{"cut: connections are refused", nil, map[string][]int{atStart: {3}, inMiddle: {1}}},
			{"stall: nothing passes", []string{timeoutUp, timeoutDown}, map[string][]int{atStart: {3}, inMiddle: {1}}},
			{"half-open: requests pass, answers do not", []string{timeoutDown}, map[string][]int{atStart: {3}, inMiddle: {1}}},
			{"reset: connections break off", []string{resetDown}, map[string][]int{atStart: {3}, inMiddle: {1}}},
			{"slow: 200 ms more for each answer", []string{latencyDown}, map[string][]int{atStart: {0}, inMiddle: {0}}},
		} {
			for _, moment := range []string{atStart, inMiddle} {
				cells = append(cells, cell{server, f.name, moment, func(t *testing.T, i *instance) func() {
					return i.proxy(server).poison(t, f.toxics)
				}, f.may[moment]})
			}
		}
	}
	return cells
}

// store makes the object store itself misbehave.
func store() []cell {
	const server = "object store"
	misbehaves := func(name string, how func(i *instance) misbehaviour, may ...int) cell {
		return cell{server, name, atStart, func(t *testing.T, i *instance) func() { return i.misbehave(t, how(i)) }, may}
	}
	return []cell{
		misbehaves("503 SlowDown for 30 % of the requests", func(*instance) misbehaviour { return slowDown }, 0),
		misbehaves("403 for whatever deletes", func(*instance) misbehaviour { return deny }, 1, 3),
		misbehaves("one key of a batch is not deleted", func(i *instance) misbehaviour { return keepOneKey(i.objectRoot + "/wp/1/0/") }, 1),
		misbehaves("a list that breaks off", func(*instance) misbehaviour { return truncate }, 1, 3),
	}
}

// nodes makes one of three log-store nodes misbehave.
func nodes() []cell {
	var cells []cell
	command := func(on []string, off []string) func(*testing.T, *instance) func() {
		return func(t *testing.T, i *instance) func() {
			i.lab.run(t, on...)
			return func() { i.lab.run(t, off...) }
		}
	}
	for _, f := range []struct {
		name    string
		on, off []string
		may     map[string][]int
	}{
		{"gone: connections are refused", []string{"stop-node", "2"}, []string{"start-node", "2"}, map[string][]int{atStart: {3}, inMiddle: {1}}},
		{"half-open: accepts and never answers", []string{"stop-node", "2", "--black-hole"}, []string{"start-node", "2"}, map[string][]int{atStart: {3}, inMiddle: {1}}},
		{"rejects marks", []string{"fault-node", "2", "--method", "MarkLogDeleted", "--mode", "reject"}, []string{"fault-node", "2", "--clear"}, map[string][]int{atStart: {1}}},
		{"never answers a mark", []string{"fault-node", "2", "--method", "MarkLogDeleted", "--mode", "stall"}, []string{"fault-node", "2", "--clear"}, map[string][]int{atStart: {1}}},
		{"unavailable for two calls", []string{"fault-node", "2", "--method", "MarkLogDeleted", "--mode", "unavailable", "--times", "2"}, []string{"fault-node", "2", "--clear"}, map[string][]int{atStart: {0}}},
		{"never says that files are gone", []string{"fault-node", "2", "--method", "GetSegmentBlockCount", "--mode", "stall"}, []string{"fault-node", "2", "--clear"}, map[string][]int{atStart: {1}}},
	} {
		for _, moment := range []string{atStart, inMiddle} {
			if may := f.may[moment]; may != nil {
				cells = append(cells, cell{"a log-store node", f.name, moment, command(f.on, f.off), may})
			}
		}
	}
	return cells
}

// members is about an etcd of three.
func members() []cell {
	stop := func(n int) func(*testing.T, *instance) func() {
		return func(t *testing.T, i *instance) func() {
			// Members take a while to stop; a node keeps the run waiting until they have.
			i.lab.run(t, "fault-node", "2", "--method", "GetSegmentBlockCount", "--mode", "stall")
			defer i.lab.run(t, "fault-node", "2", "--clear")
			for m := 1; m <= n; m++ {
				i.lab.run(t, "stop-etcd", "--member", strconv.Itoa(m))
			}
			return func() {
				for m := 1; m <= n; m++ {
					i.lab.run(t, "start-etcd", "--member", strconv.Itoa(m))
				}
				i.lab.awaitEtcd(t)
			}
		}
	}
	alarm := func(t *testing.T, i *instance) func() {
		i.lab.run(t, "etcd", "alarm", "nospace")
		return func() { i.lab.run(t, "etcd", "alarm", "clear") }
	}
	const server = "etcd of three"
	return []cell{
		{server, "one member is gone, the leader or not", atStart, stop(1), []int{0}},
		{server, "one member is gone, the leader or not", inMiddle, stop(1), []int{0, 1}},
		{server, "two members are gone: no leader", atStart, stop(2), []int{3}},
		{server, "two members are gone: no leader", inMiddle, stop(2), []int{1}},
		{server, "the NOSPACE alarm", atStart, alarm, []int{3}},
		{server, "the NOSPACE alarm", inMiddle, alarm, []int{0, 1}},
	}
}
