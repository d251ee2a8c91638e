// Package interrupt lets a run be stopped between two units of work.
//
// The context that a step is given ends at the first Ctrl-C: waits, reads and
// loops stop by themselves, as with any context. A unit of work that had better
// be finished once it is begun (a transaction, the deletion of one batch) runs
// under Unit(ctx), which lasts until the second Ctrl-C:
//
//	for _, batch := range batches {
//		if ctx.Err() != nil {
//			return context.Cause(ctx)
//		}
//		if err := deleteBatch(interrupt.Unit(ctx), batch); err != nil { ... }
//	}
//
// Stopping anywhere is safe: the instance is marked as half done and running
// the plan again continues. Units only make what is left simpler to read.
package interrupt

import (
	"context"

	"runbook/internal/fault"
)

type hardKey struct{}

// Context is what a run works under.
type Context struct {
	soft, hard         context.Context
	stopSoft, stopHard context.CancelCauseFunc
}

// New derives both contexts from parent, which ends them both.
func New(parent context.Context) *Context {
	c := &Context{}
	c.hard, c.stopHard = context.WithCancelCause(parent)
	c.soft, c.stopSoft = context.WithCancelCause(context.WithValue(c.hard, hardKey{}, c.hard))
	return c
}

// Soft is the context to pass on; it ends at the first request to stop.
func (c *Context) Soft() context.Context { return c.soft }

// Stop asks for an end between two units; calling it again changes nothing.
func (c *Context) Stop() { c.stopSoft(requested()) }

// Abort ends everything at once, with the error that says why; nil: asked for.
func (c *Context) Abort(cause error) {
	if cause == nil {
		cause = requested()
	}
	c.stopHard(cause)
}

// Unit returns the context for one unit of work: a stop requested of ctx does
// not end it, an abort does. The caller sets a deadline where the network is.
func Unit(ctx context.Context) context.Context {
	if hard, ok := ctx.Value(hardKey{}).(context.Context); ok {
		return hard
	}
	return ctx
}

// Requested reports whether ctx ended because somebody asked for it.
func Requested(ctx context.Context) bool {
	return ctx.Err() != nil && fault.KindOf(context.Cause(ctx)) == fault.Interrupted
}

func requested() error {
	return &fault.Error{Kind: fault.Interrupted, Code: "run.interrupted", Msg: "interrupted"}
}
