package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/zilliztech/woodpecker/woodpecker"
	"github.com/zilliztech/woodpecker/woodpecker/log"
)

// fill creates logs and moves their segments to the object store.
//
// A running Milvus gets there by itself only where its auditor finds completed
// segments, which a closed log never is given to: with a stock image the object
// tier can stay empty. So each segment is completed by closing its writer and
// then compacted by hand. Nobody tells the nodes, and their files stay too.
type fill struct {
	*target
	seeds, name           string
	logs, segments, bytes int
}

func (f *fill) run(ctx context.Context) error {
	if f.seeds == "" {
		return errors.New("fill needs -seeds")
	}
	etcd, err := f.openEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()
	client, err := f.openWoodpecker(ctx, etcd, f.seeds)
	if err != nil {
		return err
	}
	for n := range f.logs {
		name := fmt.Sprintf("%s-%d", f.name, n)
		id, err := f.fillLog(ctx, client, name)
		if err != nil {
			return errors.Join(fmt.Errorf("log %s: %w", name, err), client.Close(ctx))
		}
		fmt.Printf("log=%s id=%d segments=%d\n", name, id, f.segments)
	}
	return client.Close(ctx)
}

// fillLog adds segments to a log, created when missing, and returns its id.
func (f *fill) fillLog(ctx context.Context, client woodpecker.Client, name string) (int64, error) {
	exists, err := client.LogExists(ctx, name)
	if err != nil {
		return 0, err
	}
	if !exists {
		if err := client.CreateLog(ctx, name); err != nil {
			return 0, fmt.Errorf("create: %w", err)
		}
	}
	h, err := client.OpenLog(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	first, err := h.GetNextSegmentId(ctx)
	if err != nil {
		return 0, err
	}
	for range f.segments {
		if err := writeSegment(ctx, h, f.bytes); err != nil {
			return 0, err
		}
	}
	if err := h.Close(ctx); err != nil {
		return 0, fmt.Errorf("close: %w", err)
	}
	return h.GetId(), f.compact(ctx, client, name, first)
}

func writeSegment(ctx context.Context, h log.LogHandle, size int) error {
	w, err := h.OpenLogWriter(ctx)
	if err != nil {
		return fmt.Errorf("open writer: %w", err)
	}
	if result := w.Write(ctx, &log.WriteMessage{Payload: bytes.Repeat([]byte{'e'}, size)}); result.Err != nil {
		return errors.Join(fmt.Errorf("write: %w", result.Err), w.Close(ctx))
	}
	if err := w.Close(ctx); err != nil {
		return fmt.Errorf("close writer: %w", err)
	}
	return nil
}

func (f *fill) compact(ctx context.Context, client woodpecker.Client, name string, first int64) error {
	// A handle of its own: the one that wrote still holds its segments as open.
	h, err := client.OpenLog(ctx, name)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for segment := first; segment < first+int64(f.segments); segment++ {
		s, err := h.GetRecoverableSegmentHandle(ctx, segment)
		if err != nil {
			return fmt.Errorf("segment %d: %w", segment, err)
		}
		if err := s.Compact(ctx); err != nil {
			return fmt.Errorf("compact segment %d: %w", segment, err)
		}
	}
	return h.Close(ctx)
}
