// Package fault is the one shape of an error that a person will read: a stable
// code, the place it is about, what happened, and what to do next. It decides
// nothing; cmd/runbook turns the kind into an exit code, once.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what an error means for the run, and with it the exit code.
type Kind int

const (
	// Failed: a step could not finish its work (exit code 1).
	Failed Kind = iota
	// Usage: the command line or the plan is wrong (exit code 2).
	Usage
	// Refused: a precondition is not met and nothing was changed (exit code 3).
	Refused
	// Locked: another run holds the instance (exit code 4).
	Locked
	// Interrupted: a signal ended the run between two units of work (exit code 130).
	Interrupted
)

// ExitCode is what the process returns for an error of this kind.
func (k Kind) ExitCode() int {
	switch k {
	case Usage:
		return 2
	case Refused:
		return 3
	case Locked:
		return 4
	case Interrupted:
		return 130
	default:
		return 1
	}
}

// Error is an error with a place and a way out.
type Error struct {
	Kind  Kind
	Code  string   // stable, dotted, lower case: "wal.no-version-key"
	Where string   // plan position, key, object or node; may be empty
	Msg   string   // lower case, no full stop
	Hints []string // each starts with what to do
	Err   error    // the cause, may be nil
}

// Fail says that work could not be finished.
func Fail(code, format string, args ...any) *Error { return newError(Failed, code, format, args) }

// Refuse says that a precondition is not met and that nothing was changed.
func Refuse(code, format string, args ...any) *Error { return newError(Refused, code, format, args) }

// BadUsage says that the command line or the plan is wrong.
func BadUsage(code, format string, args ...any) *Error { return newError(Usage, code, format, args) }

func newError(kind Kind, code, format string, args []any) *Error {
	return &Error{Kind: kind, Code: code, Msg: fmt.Sprintf(format, args...)}
}

// At names the place: a key, an object, a node, a position in the plan.
func (e *Error) At(where string) *Error { e.Where = where; return e }

// Hint adds one thing to do.
func (e *Error) Hint(format string, args ...any) *Error {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

// Because attaches the cause.
func (e *Error) Because(err error) *Error { e.Err = err; return e }

// Error gives the one-line form: place, message, cause. Hints are left to the console.
func (e *Error) Error() string {
	var parts []string
	if e.Where != "" {
		parts = append(parts, e.Where)
	}
	parts = append(parts, e.Msg)
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the first Error in err's chain; any other error is Failed.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Failed
}

// Refusal is err as a refusal where it is a failure: for work that only reads,
// and can have changed nothing. Any other error is returned as it is.
func Refusal(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != Failed {
		return err
	}
	refusal := *e
	refusal.Kind = Refused
	return &refusal
}
