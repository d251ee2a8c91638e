// Package cli is the command line of runbook-lab, one file a command. Commands
// parse, ask the package that knows, and print: results on standard output,
// progress and errors on standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string) int {
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
