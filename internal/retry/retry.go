// Package retry is the one place that says what is tried again, how often and
// how long each attempt may take. Which request is safe to repeat is its
// caller's business: everything passed here is.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	firstPause     = 100 * time.Millisecond
	longestPause   = 5 * time.Second
	throttledPause = time.Second // where a throttled server's pauses begin
)

// Policy bounds one operation.
type Policy struct {
	Attempts int           // at least 1
	Attempt  time.Duration // longest time for one attempt; 0: only ctx bounds it
}

// Do calls op until it succeeds, fails for good or has used up its attempts.
// Each attempt gets a context of its own; between two there is a pause that
// doubles, with jitter, so that many callers do not come back at once.
// An attempt that ran into its deadline counts as a transport error.
func (p Policy) Do(ctx context.Context, op func(ctx context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, op)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !Transient(err):
			return err
		case attempt >= p.Attempts && attempt > 1:
			return fmt.Errorf("%w (tried %d times)", err, attempt)
		case attempt >= p.Attempts:
			return err
		}
		if err := Pause(ctx, attempt, err); err != nil {
			return err
		}
	}
}

func (p Policy) once(ctx context.Context, op func(ctx context.Context) error) error {
	if p.Attempt <= 0 {
		return op(ctx)
	}
	attempt, cancel := context.WithTimeout(ctx, p.Attempt)
	defer cancel()
	err := op(attempt)
	// The server keeps the same time and may end the request first, by a hair.
	deadline, _ := attempt.Deadline()
	if err != nil && ctx.Err() == nil && (attempt.Err() != nil || !time.Now().Before(deadline)) {
		return &Timeout{After: p.Attempt, Err: err}
	}
	return err
}

// Timeout says that an attempt was given up.
type Timeout struct {
	After time.Duration
	Err   error // what the client said about it
}

// Error leaves out the client's own words: they only say that time ran out.
func (t *Timeout) Error() string { return fmt.Sprintf("no answer within %s", t.After) }

// Unwrap returns what the client said.
func (t *Timeout) Unwrap() error { return t.Err }

// Pause waits before the next attempt, after the n-th failed with err. It returns
// the reason why ctx ended, if it did.
func Pause(ctx context.Context, n int, err error) error {
	timer := time.NewTimer(pause(n, err))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func pause(n int, err error) time.Duration {
	base := firstPause
	if Throttled(err) {
		base = throttledPause
	}
	base = min(base<<min(n-1, 10), longestPause)
	return base/2 + rand.N(base/2)
}

// isTimeout reports whether err is an attempt that was given up.
func isTimeout(err error) bool {
	_, ok := errors.AsType[*Timeout](err)
	return ok
}
