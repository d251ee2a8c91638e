package event

import (
	"errors"
	"slices"

	"runbook/internal/fault"
)

// Error is an error as people and programs read it.
type Error struct {
	Code    string   `json:"code,omitempty"`
	Where   string   `json:"where,omitempty"`
	Message string   `json:"message"` // place, what happened, cause
	Hints   []string `json:"hints,omitempty"`
}

// ErrorOf describes err, or returns nil for nil. Code and place are those of the
// first fault in the chain; the hints are those of all of them, each once.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Message: err.Error()}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		e.Code, e.Where = f.Code, f.Where
	}
	e.Hints = hints(err, nil)
	return e
}

// OutcomeOf is the outcome that an error stands for.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Done
	}
	switch fault.KindOf(err) {
	case fault.Usage:
		return Invalid
	case fault.Refused:
		return Refused
	case fault.Locked:
		return Locked
	case fault.Interrupted:
		return Interrupted
	default:
		return Failed
	}
}

func hints(err error, found []string) []string {
	if f, ok := err.(*fault.Error); ok {
		for _, h := range f.Hints {
			if !slices.Contains(found, h) {
				found = append(found, h)
			}
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return hints(inner, found)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found = hints(inner, found)
		}
	}
	return found
}
