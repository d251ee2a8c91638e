package objectstore

import (
	"context"
	"iter"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Object is one object of the bucket, or one version of it.
type Object struct {
	Key          string
	VersionID    string // empty when versions were not asked for
	Size         int64  // bytes; 0 for a delete marker
	DeleteMarker bool
	Noncurrent   bool // a version that a listing without versions does not show
}

// Entry is what lies directly below a prefix: an object, or a directory, which
// is a name up to and including the slash that more names follow.
type Entry struct {
	Object
	Dir bool
}

// List yields every object whose key starts with prefix; with versions, every
// version and delete marker of it. Pages are fetched as they are consumed and
// nothing is kept. An error, also of ctx, is the last thing yielded.
func (s *Store) List(ctx context.Context, prefix string, versions bool) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for entry, err := range s.list(ctx, prefix, versions, true) {
			if !yield(entry.Object, err) {
				return
			}
		}
	}
}

// Dir yields what lies directly below prefix, which is empty or ends in a slash.
func (s *Store) Dir(ctx context.Context, prefix string, versions bool) iter.Seq2[Entry, error] {
	return s.list(ctx, prefix, versions, false)
}

func (s *Store) list(ctx context.Context, prefix string, versions, recursive bool) iter.Seq2[Entry, error] {
	owner := false
	options := minio.ListObjectsOptions{Prefix: prefix, Recursive: recursive, WithVersions: versions, FetchOwner: &owner}
	return func(yield func(Entry, error) bool) {
		// The client leaves a goroutine behind unless its context ends with the loop.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for info := range s.client.ListObjectsIter(ctx, s.bucket, options) {
			if info.Err != nil {
				yield(Entry{}, s.explain("list", prefix, info.Err))
				return
			}
			if !yield(entryOf(info), nil) {
				return
			}
		}
		// When ctx ends the client's iterator just stops, as if that had been all.
		if ctx.Err() != nil {
			yield(Entry{}, context.Cause(ctx))
		}
	}
}

func entryOf(info minio.ObjectInfo) Entry {
	object := Object{
		Key: info.Key, VersionID: info.VersionID, Size: info.Size,
		DeleteMarker: info.IsDeleteMarker,
		Noncurrent:   info.VersionID != "" && !info.IsLatest,
	}
	// A directory has no time; a placeholder object of the same name has one.
	return Entry{Object: object, Dir: info.LastModified.IsZero() && strings.HasSuffix(info.Key, "/")}
}

// Exists reports whether any object's key starts with prefix.
func (s *Store) Exists(ctx context.Context, prefix string) (bool, error) {
	for _, err := range s.List(ctx, prefix, false) {
		return err == nil, err
	}
	return false, nil
}

// Buckets lists the buckets that the credentials may see; many may see none.
func (s *Store) Buckets(ctx context.Context) ([]string, error) {
	infos, err := s.client.ListBuckets(ctx)
	if err != nil {
		return nil, s.explain("list buckets", "", err)
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name
	}
	return names, nil
}

// Versioned reports whether keys of the bucket may have more than one version:
// versioning is on, or was on before it was suspended.
func (s *Store) Versioned(ctx context.Context) (bool, error) {
	config, err := s.client.GetBucketVersioning(ctx, s.bucket)
	switch {
	case err == nil:
		return config.Status != "", nil
	case notImplemented(err):
		return false, nil
	case denied(err):
		// Not everyone who may list may ask this. Listing versions is right either
		// way, where it is allowed; where it is not, there is nothing else to try.
		return s.versionsListable(ctx), nil
	default:
		return false, s.explain("read the versioning of", "", err)
	}
}

func (s *Store) versionsListable(ctx context.Context) bool {
	for _, err := range s.list(ctx, "", true, true) {
		return err == nil
	}
	return false
}
