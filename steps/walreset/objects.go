package walreset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"runbook/internal/fault"
	"runbook/internal/objectstore"
	"runbook/internal/woodpecker"
)

// tally counts the objects of one log.
type tally struct{ objects, versions, markers, bytes int64 }

func (t *tally) any() bool { return t.objects+t.versions+t.markers > 0 }

func (t *tally) add(o objectstore.Object) {
	switch {
	case o.DeleteMarker:
		t.markers++
	case o.Noncurrent:
		t.versions++
	default:
		t.objects++
	}
	t.bytes += o.Size
}

func (t *tally) addAll(other tally) {
	t.objects += other.objects
	t.versions += other.versions
	t.markers += other.markers
	t.bytes += other.bytes
}

// census counts what lies below the object root.
type census struct {
	versioned bool // keys may have versions: they are counted and deleted too
	logs      map[int64]*tally
	foreign   int64
	sample    []string // some foreign names
}

const sampleSize = 10

func (c *census) total() tally {
	var sum tally
	for _, t := range c.logs {
		sum.addAll(*t)
	}
	return sum
}

// countObjects lists everything below the object root.
func (r *reset) countObjects(ctx context.Context, what string) (census, error) {
	c := census{logs: map[int64]*tally{}}
	var err error
	if c.versioned, err = r.store.Versioned(ctx); err != nil {
		return c, err
	}
	progress := r.env.Report.Progress(what, 0)
	defer progress.Done()
	var mu sync.Mutex
	err = r.walkObjects(ctx, c.versioned, func(o objectstore.Object, name woodpecker.ObjectName, ours bool) error {
		progress.Add(1)
		mu.Lock()
		defer mu.Unlock()
		if ours {
			if c.logs[name.LogID] == nil {
				c.logs[name.LogID] = &tally{}
			}
			c.logs[name.LogID].add(o)
			return nil
		}
		c.foreign++
		if len(c.sample) < sampleSize {
			c.sample = append(c.sample, o.Key)
		}
		return nil
	})
	slices.Sort(c.sample)
	return c, err
}

// walkObjects visits every object below the object root, several directories at
// a time; ours says that its name matches the layout. visit may be called
// concurrently. Directories that do not exist cost nothing: they are not listed.
func (r *reset) walkObjects(ctx context.Context, versions bool, visit func(o objectstore.Object, name woodpecker.ObjectName, ours bool) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.in.Parallel, 1))
	see := func(o objectstore.Object) error {
		name, ours := woodpecker.ParseObject(r.root, o.Key)
		return visit(o, name, ours)
	}
	for entry, err := range r.store.Dir(groupCtx, woodpecker.ObjectPrefix(r.root), versions) {
		if err == nil && !entry.Dir {
			err = see(entry.Object)
		}
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		if !entry.Dir {
			continue
		}
		group.Go(func() error {
			for object, err := range r.store.List(groupCtx, entry.Key, versions) {
				if err != nil {
					return err
				}
				if err := see(object); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// deleteFiles deletes the objects, or the local files, of every log that is not
// held back.
func (r *reset) deleteFiles(ctx context.Context, found *inventory, out *Outputs) error {
	if r.store == nil {
		return r.deleteLocal(ctx, found, out)
	}
	return r.deleteObjects(ctx, found, out)
}

func (r *reset) deleteObjects(ctx context.Context, found *inventory, out *Outputs) error {
	due := found.due()
	var total tally
	for _, l := range due {
		total.addAll(l.objects)
	}
	if !total.any() {
		return nil
	}
	progress := r.env.Report.Progress("deleting objects", total.objects+total.versions+total.markers)
	defer progress.Done()
	d := deletion{logs: due, root: r.root, progress: progress.Add, refused: map[int64]objectstore.Failure{}, counts: map[int64]int64{}}
	removal := r.store.Remove(ctx, r.in.Parallel, d.onBatch)
	walkErr := r.walkObjects(ctx, found.objects.versioned, func(o objectstore.Object, name woodpecker.ObjectName, ours bool) error {
		if !ours || due[name.LogID] == nil {
			return nil
		}
		return removal.Add(o)
	})
	closeErr := removal.Close()
	out.Objects.Removed, out.Objects.Versions = d.removed.objects, d.removed.versions
	out.Objects.DeleteMarkers, out.Objects.Bytes = d.removed.markers, d.removed.bytes
	d.holdBack(r.store.Bucket())
	// A removal that failed makes the listing fail too: its error is the cause.
	return errors.Join(closeErr, walkErrUnless(closeErr, walkErr))
}

func walkErrUnless(cause, err error) error {
	if cause != nil {
		return nil
	}
	return err
}

// deletion collects what became of the batches.
type deletion struct {
	logs     map[int64]*log
	root     string
	progress func(int64)

	mu      sync.Mutex
	removed tally
	refused map[int64]objectstore.Failure // the first of each log
	counts  map[int64]int64               // how many of each log
}

func (d *deletion) onBatch(removed []objectstore.Object, failed []objectstore.Failure) {
	d.progress(int64(len(removed)))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range removed {
		d.removed.add(o)
	}
	for _, f := range failed {
		name, _ := woodpecker.ParseObject(d.root, f.Object.Key)
		if d.counts[name.LogID]++; d.counts[name.LogID] == 1 {
			d.refused[name.LogID] = f
		}
	}
}

// holdBack keeps the metadata of each log whose objects could not all be deleted.
func (d *deletion) holdBack(bucket string) {
	for id, first := range d.refused {
		err := fault.Fail("wal.object-not-deleted", "the object store does not delete it: %s", first.Reason).At(bucket + "/" + first.Object.Key).
			Hint("allow the deletion (policy, legal hold or retention of the object), then apply again: it finishes what is left")
		if n := d.counts[id]; n > 1 {
			err.Msg = fmt.Sprintf("the object store does not delete it and %d more of the log: %s", n-1, first.Reason)
		}
		d.logs[id].hold(err)
	}
}

// lookAgain lists once more and holds back every log of which something is left:
// a log goes only when its objects are seen to be gone.
func (r *reset) lookAgain(ctx context.Context, found *inventory) error {
	if r.store == nil {
		return r.lookAgainLocally(ctx, found)
	}
	left, err := r.countObjects(ctx, "listing again")
	if err != nil {
		return err
	}
	for _, l := range found.due() {
		if t := left.logs[l.id]; t != nil && t.any() {
			l.hold(fault.Fail("wal.objects-left", "%d objects are there after all were deleted: something writes them", t.objects+t.versions+t.markers).
				At(r.store.Bucket() + "/" + woodpecker.LogObjectPrefix(r.root, l.id)).
				Hint("find out what writes there, stop it, then apply again"))
		}
	}
	return nil
}

// due are the logs that nothing speaks against emptying, by id.
func (f *inventory) due() map[int64]*log {
	due := map[int64]*log{}
	for _, l := range f.logs {
		if l.held == nil {
			due[l.id] = l
		}
	}
	return due
}
