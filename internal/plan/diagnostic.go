package plan

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"
)

// Severity says whether a plan with this diagnostic may run.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one thing that is wrong with a plan, with its place and a way
// out. Its JSON form is what `-o json` prints. Codes are stable and listed in
// docs/plan-language.md.
type Diagnostic struct {
	File     string   `json:"file"`             // or "--set name"
	Line     int      `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column   int      `json:"column,omitempty"` // from 1, in characters
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`           // stable, dotted, lower case
	Message  string   `json:"message"`        // lower case, no full stop
	Hint     string   `json:"hint,omitempty"` // starts with what to do
}

// Error gives the one-line form: place and message. The hint is left to the console.
func (d *Diagnostic) Error() string { return d.Where() + ": " + d.Message }

// Where is file:line:column, as editors and terminals make it clickable.
func (d *Diagnostic) Where() string {
	if d.Line == 0 {
		return d.File
	}
	return fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
}

// Diagnostics takes an error of Load, Bind or Check apart.
func Diagnostics(err error) []*Diagnostic {
	if all, ok := errors.AsType[*multierror.Error](err); ok {
		var out []*Diagnostic
		for _, e := range all.Errors {
			out = append(out, Diagnostics(e)...)
		}
		return out
	}
	if d, ok := errors.AsType[*Diagnostic](err); ok {
		return []*Diagnostic{d}
	}
	return nil
}
