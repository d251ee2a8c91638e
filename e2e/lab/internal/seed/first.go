package seed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zilliztech/woodpecker/woodpecker/log"

	"runbook/e2e/lab/internal/milvus"
)

// First is what the first write after a reset showed.
type First struct {
	Name          string
	ID            int64
	CounterBefore int64
	Entry         string
}

// firstTimeout bounds the first write: a client without a quorum of nodes
// tries for as long as it may.
const firstTimeout = 30 * time.Second

// WriteFirst creates a log through a new client, without any of the lab's
// detours, writes an entry and reads it back.
func (s *Seeder) WriteFirst(ctx context.Context) (first First, err error) {
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	if first.CounterBefore, err = s.counter(ctx); err != nil {
		return first, err
	}
	c, err := s.openClient(ctx, s.etcd, s.target.WALRoot())
	if err != nil {
		return first, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	taken, err := c.GetAllLogs(ctx)
	if err != nil {
		return first, err
	}
	for n := 0; first.Name == "" || slices.Contains(taken, first.Name); n++ {
		first.Name = milvus.PChannel(s.target.Root, n)
	}
	if err := c.CreateLog(ctx, first.Name); err != nil {
		return first, fmt.Errorf("create log %s: %w", first.Name, err)
	}
	h, err := c.OpenLog(ctx, first.Name)
	if err != nil {
		return first, err
	}
	first.ID = h.GetId()
	first.Entry = "first entry of log " + first.Name
	if err := writeSegment(ctx, h, []byte(first.Entry)); err != nil {
		return first, err
	}
	return first, errors.Join(readBack(ctx, h, first.Entry), h.Close(ctx))
}

func readBack(ctx context.Context, h log.LogHandle, want string) error {
	from := log.EarliestLogMessageID()
	reader, err := h.OpenLogReader(ctx, &from, "runbook-lab")
	if err != nil {
		return fmt.Errorf("open reader: %w", err)
	}
	msg, err := reader.ReadNext(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("read: %w", err), reader.Close(ctx))
	}
	if string(msg.Payload) != want {
		err = fmt.Errorf("read back %q, wrote %q", msg.Payload, want)
	}
	return errors.Join(err, reader.Close(ctx))
}
