package objectstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"runbook/internal/failpoint"
	"runbook/internal/interrupt"
	"runbook/internal/retry"
)

const (
	batchSize     = 1000 // the most that S3 takes in one multi-object delete
	keyRounds     = 4    // how often keys that a batch could not delete for now are sent again
	singleStreams = 8    // requests in flight for one batch where there is no multi-object delete
)

// Failure is an object that the store would not delete.
type Failure struct {
	Object Object
	Code   string // S3's code: AccessDenied, ...
	Reason string // code and message
}

// Removal deletes objects while they are still being listed: any number of
// listers call Add, a fixed number of streams deletes batches. What is in memory
// at any time is one batch a stream and two that wait, however many objects there are.
//
//	removal := store.Remove(ctx, 8, onBatch)
//	... removal.Add(object) ...
//	err := removal.Close()
type Removal struct {
	store   *Store
	onBatch func(removed []Object, failed []Failure)
	group   *errgroup.Group
	ctx     context.Context
	batches chan []Object

	mu      sync.Mutex
	filling []Object
}

// Remove starts the streams. onBatch is told what became of each batch; it may
// be called from several goroutines at once.
func (s *Store) Remove(ctx context.Context, streams int, onBatch func(removed []Object, failed []Failure)) *Removal {
	group, groupCtx := errgroup.WithContext(ctx)
	r := &Removal{store: s, onBatch: onBatch, group: group, ctx: groupCtx, batches: make(chan []Object, 1)}
	for range max(streams, 1) {
		group.Go(r.stream)
	}
	return r
}

// Add hands over one object. It waits while all streams are busy and returns an
// error once the removal has failed as a whole.
func (r *Removal) Add(object Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filling == nil {
		r.filling = make([]Object, 0, batchSize)
	}
	r.filling = append(r.filling, object)
	if len(r.filling) < batchSize {
		return nil
	}
	return r.flush()
}

func (r *Removal) flush() error {
	batch := r.filling
	r.filling = nil
	select {
	case r.batches <- batch:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// Close deletes what was added last and waits for all streams. The error is one
// of the removal as a whole; what single objects failed with went to onBatch.
func (r *Removal) Close() error {
	r.mu.Lock()
	var flushed error
	if len(r.filling) > 0 {
		flushed = r.flush()
	}
	r.mu.Unlock()
	close(r.batches)
	if err := r.group.Wait(); err != nil {
		return err
	}
	return flushed
}

func (r *Removal) stream() error {
	for batch := range r.batches {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		failed, err := r.store.removeBatch(interrupt.Unit(r.ctx), batch)
		if err != nil {
			return err
		}
		failpoint.Hit("objectstore/batch-removed")
		r.onBatch(without(batch, failed), failed)
	}
	return nil
}

// removeBatch deletes up to batchSize objects. Keys that failed in a way that
// may pass are sent again; what is left is returned. An error is about the
// request as a whole, which the transport has tried again already.
func (s *Store) removeBatch(ctx context.Context, batch []Object) ([]Failure, error) {
	var final []Failure
	for round := 1; ; round++ {
		failed, err := s.removeOnce(ctx, batch)
		if err != nil {
			return nil, err
		}
		batch = nil
		var passing error
		for _, f := range failed {
			if round < keyRounds && retry.Transient(f.err) {
				batch, passing = append(batch, f.Object), f.err
				continue
			}
			final = append(final, f.Failure)
		}
		if len(batch) == 0 {
			return final, nil
		}
		if err := retry.Pause(ctx, round, passing); err != nil {
			return nil, err
		}
	}
}

// keyFailure is a Failure with the error that decides about another try.
type keyFailure struct {
	Failure
	err error
}

func (s *Store) removeOnce(ctx context.Context, batch []Object) ([]keyFailure, error) {
	if !s.singleDeletes.Load() {
		failed, err := s.multiDelete(ctx, batch)
		if !notImplemented(err) {
			return failed, err
		}
		s.singleDeletes.Store(true)
	}
	return s.deleteOneByOne(ctx, batch)
}

// multiDelete sends one multi-object delete. The store confirms each object; one
// that it says nothing about counts as failed.
func (s *Store) multiDelete(ctx context.Context, batch []Object) ([]keyFailure, error) {
	results, err := s.client.RemoveObjectsWithIter(ctx, s.bucket, infos(batch), minio.RemoveObjectsOptions{})
	if err != nil {
		return nil, s.explain("delete objects", "", err)
	}
	open := make(map[name]Object, len(batch))
	for _, object := range batch {
		open[nameOf(object)] = object
	}
	var failed []keyFailure
	for result := range results {
		key := name{result.ObjectName, result.ObjectVersionID}
		if result.Err == nil {
			confirm(open, key)
			continue
		}
		s3, ok := errors.AsType[minio.ErrorResponse](result.Err)
		// An HTTP status, or no name, is said of the request and not of one key.
		switch {
		case notImplemented(result.Err):
			return nil, result.Err
		case !ok || s3.StatusCode != 0 || result.ObjectName == "":
			return nil, s.explain("delete objects", "", result.Err)
		}
		object, known := open[key]
		if !known {
			object = Object{Key: key.key, VersionID: key.version}
		}
		failed = append(failed, failure(object, s3))
		delete(open, key)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, object := range open {
		failed = append(failed, keyFailure{Failure{object, "Unconfirmed", "the store did not say what became of it"}, errUnconfirmed})
	}
	return failed, nil
}

// confirm strikes off what was deleted. Not every store repeats the version.
func confirm(open map[name]Object, key name) {
	if _, ok := open[key]; ok || key.version != "" {
		delete(open, key)
		return
	}
	for candidate := range open {
		if candidate.key == key.key {
			delete(open, candidate)
		}
	}
}

// deleteOneByOne is for stores without multi-object delete.
func (s *Store) deleteOneByOne(ctx context.Context, batch []Object) ([]keyFailure, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(singleStreams)
	var mu sync.Mutex
	var failed []keyFailure
	for _, object := range batch {
		group.Go(func() error {
			err := s.client.RemoveObject(ctx, s.bucket, object.Key, minio.RemoveObjectOptions{VersionID: object.VersionID})
			s3, ok := errors.AsType[minio.ErrorResponse](err)
			switch {
			case err == nil || ok && (s3.Code == "NoSuchKey" || s3.Code == "NoSuchVersion"):
				return nil
			case !ok || s3.Code == "NoSuchBucket" || s3.Code == "InvalidAccessKeyId" || s3.Code == "SignatureDoesNotMatch":
				return s.explain("delete", object.Key, err)
			}
			s3.StatusCode = 0 // sent again already, where that could help
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, failure(object, s3))
			return nil
		})
	}
	return failed, group.Wait()
}

func failure(object Object, s3 minio.ErrorResponse) keyFailure {
	return keyFailure{Failure{Object: object, Code: s3.Code, Reason: reason(s3)}, s3}
}

var errUnconfirmed = errors.New("not confirmed")

// name is what the store calls one version of an object.
type name struct{ key, version string }

func nameOf(o Object) name { return name{o.Key, o.VersionID} }

func infos(batch []Object) iter.Seq[minio.ObjectInfo] {
	return func(yield func(minio.ObjectInfo) bool) {
		for _, object := range batch {
			if !yield(minio.ObjectInfo{Key: object.Key, VersionID: object.VersionID}) {
				return
			}
		}
	}
}

// without returns the objects of batch that are not among failed.
func without(batch []Object, failed []Failure) []Object {
	if len(failed) == 0 {
		return batch
	}
	left := make(map[name]bool, len(failed))
	for _, f := range failed {
		left[nameOf(f.Object)] = true
	}
	return slices.DeleteFunc(slices.Clone(batch), func(o Object) bool { return left[nameOf(o)] })
}
