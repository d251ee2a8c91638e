package walreset

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"runbook/internal/fault"
	"runbook/internal/objectstore"
	"runbook/internal/woodpecker"
)

const (
	searchDepth    = 4   // "a/b/c/wp/": how deep an object root may lie
	searchListings = 300 // how many directories the search looks into
	searchNames    = 1000
	searchProof    = 20 // objects looked at to tell a log from another directory with a number
	searchBuckets  = 20
)

// objectsAreHere makes sure that the place given is where this WAL's objects lie.
// Metadata that speaks of objects, and none where they should be: that is a wrong
// bucket or root, and going on would leave everything behind on the object store
// and, since their directories carry the same names, on the nodes. An interrupted
// run explains the same, and so does a WAL whose objects are lost.
func (r *reset) objectsAreHere(ctx context.Context, found *inventory) error {
	if r.store == nil {
		return r.filesAreHere(found)
	}
	expected := found.expected(r.settings.WAL.StorageType)
	total := found.objects.total()
	if total.any() || found.segments() == 0 {
		return nil
	}
	where := r.store.Bucket() + "/" + woodpecker.ObjectPrefix(r.root)
	others, err := r.searchElsewhere(ctx)
	switch {
	case err != nil:
		return err
	case len(others) > 0 && expected > 0 && !r.in.AcceptNoObjects && !found.resumed:
		refusal := fault.Refuse("wal.objects-elsewhere", "no woodpecker object is there, where those of %d segments should be, but there are some at %s", expected, joined(others)).At(where)
		for _, other := range others {
			refusal.Hint("%s", other.hint(r))
		}
		return refusal.Hint("set acceptNoObjects: true on this step if that is another instance's and this one's objects are lost")
	case len(others) > 0:
		found.warnings = append(found.warnings, fmt.Sprintf("no woodpecker object is at %s, but there are some at %s: %s", where, joined(others), others[0].hint(r)))
	case expected > 0 && !r.in.AcceptNoObjects && !found.resumed:
		return fault.Refuse("wal.no-objects", "no woodpecker object is there, where those of %d segments should be: that is what a wrong bucket or object root looks like", expected).At(where).
			Hint("set instance.objectStorage.bucket and rootPath to milvus's minio.bucketName and minio.rootPath").
			Hint("set acceptNoObjects: true on this step if these are right and the objects are lost")
	case expected > 0 && !found.resumed:
		found.warnings = append(found.warnings, fmt.Sprintf("no woodpecker object is at %s, where those of %d segments should be: that is what a wrong bucket or object root looks like", where, expected))
	case !found.resumed:
		return r.onNodesAlone(ctx, found)
	}
	return nil
}

// onNodesAlone warns of what nothing can tell from a wrong address: segments that
// were never compacted, on nodes that say yes to whatever they are told to delete.
// A Milvus that has flushed anything has objects beside its WAL.
func (r *reset) onNodesAlone(ctx context.Context, found *inventory) error {
	milvus := strings.TrimSuffix(r.root, "wp")
	used, err := r.store.Exists(ctx, milvus)
	if err != nil || used {
		return err
	}
	found.warnings = append(found.warnings, fmt.Sprintf("no object of woodpecker or of milvus is below %s/%s, and the segments lie on the log-store nodes alone, which cannot be asked what they hold: a wrong bucket or object root looks the same", r.store.Bucket(), milvus))
	return nil
}

// expected counts the segments whose data must be in the object store.
func (f *inventory) expected(storage string) int64 {
	var n int64
	for _, entry := range f.md.Logs {
		if entry.Parked {
			continue
		}
		if storage == onObjects {
			n += entry.Stored
		} else {
			n += entry.Compacted
		}
	}
	return n
}

func (f *inventory) segments() int64 {
	var n int64
	for _, entry := range slices.Concat(f.md.Logs, f.md.Headless) {
		n += entry.Segments
	}
	return n
}

// place is an object root that holds objects of a woodpecker.
type place struct{ bucket, root string }

func (p place) String() string { return p.bucket + "/" + p.root + "/" }

func (p place) hint(r *reset) string {
	var set []string
	if p.bucket != r.store.Bucket() {
		set = append(set, "bucket: "+p.bucket)
	}
	if p.root != r.root {
		rootPath, ok := strings.CutSuffix(p.root, "/wp")
		if !ok && p.root != "wp" {
			return fmt.Sprintf("look at %s: no milvus writes its WAL there, since it adds /wp to its rootPath", p)
		}
		if p.root == "wp" {
			rootPath = `""`
		}
		set = append(set, "rootPath: "+rootPath)
	}
	return fmt.Sprintf("set instance.objectStorage.%s if %s is this instance's", strings.Join(set, " and "), p)
}

// searchElsewhere looks for woodpecker's layout at other roots of the bucket,
// the likely ones first, and at the same root of other buckets.
func (r *reset) searchElsewhere(ctx context.Context) ([]place, error) {
	s := search{store: r.store, skip: r.root, listings: searchListings}
	given := r.settings.ObjectStorage.RootPath
	for _, root := range []string{strings.TrimSuffix(given, "/"), path.Clean(given) + "/wp", strings.TrimPrefix(r.root, "/")} {
		if err := s.try(ctx, root); err != nil {
			return nil, err
		}
	}
	if err := s.below(ctx, "", searchDepth); err != nil {
		return nil, err
	}
	buckets, err := r.store.Buckets(ctx)
	if err != nil {
		buckets = nil // many may not list them
	}
	for _, bucket := range buckets[:min(len(buckets), searchBuckets)] {
		if bucket == r.store.Bucket() {
			continue
		}
		other := search{store: r.store.InBucket(bucket), listings: searchListings}
		if err := other.try(ctx, r.root); err == nil {
			s.found = append(s.found, other.found...)
		}
	}
	return s.found, nil
}

type search struct {
	store    *objectstore.Store
	skip     string // the root known to hold nothing
	listings int    // left
	found    []place
}

// try asks whether root holds a log, and remembers it.
func (s *search) try(ctx context.Context, root string) error {
	here := place{s.store.Bucket(), root}
	if root == "" || root == s.skip || slices.Contains(s.found, here) {
		return nil
	}
	for entry, err := range s.names(ctx, woodpecker.ObjectPrefix(root)) {
		if err != nil {
			return err
		}
		if _, isLog := woodpecker.ParseLogDir(root, entry.Key); !entry.Dir || !isLog {
			continue
		}
		ours, err := s.holdsLog(ctx, root, entry.Key)
		if err != nil {
			return err
		}
		if ours {
			s.found = append(s.found, here)
			return nil
		}
	}
	return nil
}

// below searches every directory below prefix, depth levels down.
func (s *search) below(ctx context.Context, prefix string, depth int) error {
	var dirs []string
	for entry, err := range s.names(ctx, prefix) {
		if err != nil {
			return err
		}
		if entry.Dir {
			dirs = append(dirs, entry.Key)
		}
	}
	for _, dir := range dirs {
		root := strings.TrimSuffix(dir, "/")
		if _, isNumber := woodpecker.ParseLogDir(strings.TrimSuffix(prefix, "/"), dir); isNumber {
			continue // a log or a collection: no root lies below
		}
		if path.Base(root) == "wp" {
			if err := s.try(ctx, root); err != nil {
				return err
			}
			continue
		}
		if depth > 1 {
			if err := s.below(ctx, dir, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// names yields what lies directly below prefix, at most searchNames of it.
func (s *search) names(ctx context.Context, prefix string) func(yield func(objectstore.Entry, error) bool) {
	return func(yield func(objectstore.Entry, error) bool) {
		if s.listings--; s.listings < 0 {
			return
		}
		n := 0
		for entry, err := range s.store.Dir(ctx, prefix, false) {
			if n++; n > searchNames || !yield(entry, err) {
				return
			}
		}
	}
}

func (s *search) holdsLog(ctx context.Context, root, dir string) (bool, error) {
	n := 0
	for object, err := range s.store.List(ctx, dir, false) {
		if err != nil {
			return false, err
		}
		if _, ours := woodpecker.ParseObject(root, object.Key); ours {
			return true, nil
		}
		if n++; n == searchProof {
			break
		}
	}
	return false, nil
}
