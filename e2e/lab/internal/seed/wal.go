package seed

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strconv"

	"github.com/zilliztech/woodpecker/woodpecker/log"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"runbook/e2e/lab/internal/milvus"
)

// WAL says how much to write.
type WAL struct {
	Logs     int
	Segments int
	Bytes    int  // size of each entry
	Objects  int  // objects to add to each segment beside woodpecker's own
	Compact  bool // move segments to the object store, as Milvus's auditor does
}

// writers bounds the logs written at once.
const writers = 8

// WriteWAL creates logs named like Milvus's pchannels and fills them. Existing
// logs of the same name get more segments.
func (s *Seeder) WriteWAL(ctx context.Context, w WAL) error {
	names := make([]string, w.Logs)
	for n := range names {
		names[n] = milvus.PChannel(s.target.Root, n)
	}
	return s.withClient(ctx, func(c *Client) error { return s.writeLogs(ctx, c, names, w) })
}

func (s *Seeder) withClient(ctx context.Context, do func(*Client) error) error {
	return s.withMetadata(ctx, func(etcd *clientv3.Client) (err error) {
		c, err := s.openClient(ctx, etcd, s.clientRoot())
		if err != nil {
			return err
		}
		defer func() {
			if closeErr := c.Close(ctx); err == nil {
				err = closeErr
			}
		}()
		return do(c)
	})
}

func (s *Seeder) writeLogs(ctx context.Context, c *Client, names []string, w WAL) error {
	// One after the other, so that ids follow names.
	for _, name := range names {
		exists, err := c.LogExists(ctx, name)
		if err != nil {
			return fmt.Errorf("log %s: %w", name, err)
		}
		if exists {
			continue
		}
		if err := c.CreateLog(ctx, name); err != nil {
			return fmt.Errorf("create log %s: %w", name, err)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, name := range names {
		g.Go(func() error {
			if err := s.writeLog(gctx, c, name, w); err != nil {
				return fmt.Errorf("log %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// writeLog makes one segment for each writer that is opened and closed: a close
// completes the segment, and only completed segments can be compacted.
func (s *Seeder) writeLog(ctx context.Context, c *Client, name string, w WAL) error {
	h, err := c.OpenLog(ctx, name)
	if err != nil {
		return err
	}
	first, err := h.GetNextSegmentId(ctx)
	if err != nil {
		return err
	}
	for range w.Segments {
		if err := writeSegment(ctx, h, bytes.Repeat([]byte{'w'}, w.Bytes)); err != nil {
			return err
		}
	}
	if err := h.Close(ctx); err != nil {
		return err
	}
	if !w.Compact || s.target.StorageType == StorageLocal {
		return nil
	}
	// A fresh handle: the old one remembers its segments as being written.
	if h, err = c.OpenLog(ctx, name); err != nil {
		return err
	}
	for n := range w.Segments {
		segment := first + int64(n)
		sh, err := h.GetRecoverableSegmentHandle(ctx, segment)
		if err != nil {
			return fmt.Errorf("segment %d: %w", segment, err)
		}
		if err := sh.Compact(ctx); err != nil {
			return fmt.Errorf("compact segment %d: %w", segment, err)
		}
		if err := s.addObjects(ctx, h.GetId(), segment, w.Objects); err != nil {
			return err
		}
	}
	return h.Close(ctx)
}

func writeSegment(ctx context.Context, h log.LogHandle, entry []byte) error {
	writer, err := h.OpenLogWriter(ctx)
	if err != nil {
		return fmt.Errorf("open writer: %w", err)
	}
	result := writer.Write(ctx, &log.WriteMessage{Payload: entry})
	if result.Err != nil {
		return fmt.Errorf("write: %w", result.Err)
	}
	if err := writer.Close(ctx); err != nil {
		return fmt.Errorf("close writer: %w", err)
	}
	return nil
}

// firstExtra numbers added blocks far above those woodpecker writes.
const firstExtra = 1000

func (s *Seeder) addObjects(ctx context.Context, logID, segment int64, count int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for n := range count {
		key := path.Join(s.clientRoot(), strconv.FormatInt(logID, 10), strconv.FormatInt(segment, 10), fmt.Sprintf("m_%d.blk", firstExtra+n))
		g.Go(func() error { return s.put(gctx, key, "extra block") })
	}
	return g.Wait()
}
