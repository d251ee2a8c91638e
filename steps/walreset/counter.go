package walreset

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

// counterCovers refuses a log id counter below an id in use: etcd was restored
// from an older backup than the rest. New logs would get ids again whose objects
// or files still lie around.
func (r *reset) counterCovers(_ context.Context, found *inventory) error {
	above := found.above(found.md.Counter)
	if len(above) == 0 || r.in.RaiseCounter {
		return nil
	}
	return fault.Refuse("wal.counter-regressed", "the log id counter is %d, but ids up to %d are in use: %s",
		found.md.Counter, found.highestID(), some(above)).
		At(found.md.Keys.LogIDCounter()).
		Hint("set raiseCounter: true on this step: it raises the counter to %d before anything is deleted", found.highestID())
}

// highestID is the highest log id seen on any tier, or the counter.
func (f *inventory) highestID() int64 {
	highest := f.md.Counter
	if n := len(f.logs); n > 0 {
		highest = max(highest, f.logs[n-1].id)
	}
	for _, id := range f.md.LogIDs {
		highest = max(highest, id)
	}
	return highest
}

// above names the ids above the counter, each with where it was seen.
func (f *inventory) above(counter int64) []string {
	var seen []string
	for _, l := range f.logs {
		if l.id > counter {
			seen = append(seen, fmt.Sprintf("%d (%s)", l.id, strings.Join(l.seenIn(), ", ")))
		}
	}
	for _, id := range f.md.LogIDs {
		if id > counter {
			seen = append(seen, fmt.Sprintf("%d (records in etcd)", id))
		}
	}
	return seen
}

func (l *log) seenIn() []string {
	var places []string
	for _, entry := range l.entries {
		if entry.Parked {
			places = append(places, "parked log "+entry.Name)
		} else {
			places = append(places, "log "+entry.Name)
		}
	}
	if l.objects.any() {
		places = append(places, "objects")
	}
	if l.local.Files > 0 {
		places = append(places, "local files")
	}
	return places
}

// raiseCounter sets the counter to the highest id in use, never lower than it is:
// the transaction compares the value that was read.
func (r *reset) raiseCounter(ctx context.Context, found *inventory, out *Outputs) error {
	before, after := found.md.Counter, found.highestID()
	if after <= before {
		return nil
	}
	key := found.md.Keys.LogIDCounter()
	put := clientv3.OpPut(key, strconv.FormatInt(after, 10))
	if err := r.commit(ctx, []clientv3.Cmp{r.counterIs(found)}, put); err != nil {
		if changed, err2 := r.counterNow(ctx, found); err2 != nil || changed != after {
			return err
		} // an earlier attempt was applied although its answer got lost
	}
	failpoint.Hit("walreset/counter-raised")
	found.md.Counter, out.LogIDCounter.After = after, after
	r.env.Report.Note("raised the log id counter from %d to %d", before, after)
	return nil
}

// counterIs compares the counter with what it is known to be: no transaction of
// this step is applied to another one.
func (r *reset) counterIs(found *inventory) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(found.md.Keys.LogIDCounter()), "=", strconv.FormatInt(found.md.Counter, 10))
}

func (r *reset) counterNow(ctx context.Context, found *inventory) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.in.AttemptTimeout)
	defer cancel()
	resp, err := r.etcd.Get(ctx, found.md.Keys.LogIDCounter())
	if err != nil {
		return 0, r.etcdFailed(err)
	}
	if len(resp.Kvs) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(resp.Kvs[0].Value), 10, 64)
	return n, err
}
