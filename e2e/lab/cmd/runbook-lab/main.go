// Command runbook-lab runs the outside world of runbook on this machine: a real
// etcd, a real object store and real woodpecker log-store nodes on loopback
// addresses, and looks into them without sharing code with runbook.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var quiet errFound
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &quiet):
		return exitFailed // the result on standard output says it all
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "runbook-lab:", err)
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "runbook-lab:", err)
		return exitFailed
	}
}

// errFound ends a command whose output is a finding, not an error: differences,
// or a WAL that is not empty.
type errFound struct{}

func (errFound) Error() string { return "found" }

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
