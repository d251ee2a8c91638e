package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"runbook/internal/fault"
)

// errTimeout says that a wait's time is over; the caller says what was missing.
var errTimeout = errors.New("timed out")

// poll looks at the release until done says so, the time is over (errTimeout) or
// the API server has not answered for several looks in a row.
func (c *Client) poll(ctx context.Context, r Release, wait Wait, done func(*State) (bool, error)) error {
	const patience = 3 // looks that may fail in a row: an API server restarts too
	deadline := time.Now().Add(wait.Timeout)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	failures := 0
	for {
		s, err := c.Look(ctx, r)
		switch {
		case err != nil && (failures+1 >= patience || !transient(err)):
			return err
		case err != nil:
			failures++
		default:
			failures = 0
			if wait.Look != nil {
				wait.Look(s)
			}
			if ok, err := done(s); ok || err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			if err != nil {
				return err
			}
			return errTimeout
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// transient tells what may pass by itself from what will not.
func transient(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && (e.Code == "kube.unreachable" || e.Code == "kube.api-error")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
