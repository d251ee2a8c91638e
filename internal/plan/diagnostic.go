package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/go-multierror"
)

// Severity says whether a plan with this diagnostic may run.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Position is a place in a file. Lines and columns count from 1, columns in
// characters; the zero Position is the file as a whole.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Diagnostic is one thing that is wrong with a plan, with its place and a way
// out. Its JSON form is what `-o json` prints. Codes are stable and listed in
// docs/plan-language.md. It never holds the value of a secret.
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

// Where is file:line:column, which terminals and editors make clickable.
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

// hint sets what to do.
func (d *Diagnostic) hint(format string, args ...any) {
	d.Hint = fmt.Sprintf(format, args...)
}

// maxText bounds a message or a hint, in characters: names and values that they
// quote come from a file that may be anything.
const maxText = 400

// oneLine makes what a file or the command line said fit for one line of a terminal.
func oneLine(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if n++; n > maxText {
			b.WriteString("...")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// tidy makes message and hint one line each.
func (d *Diagnostic) tidy() *Diagnostic {
	d.Message, d.Hint = oneLine(d.Message), oneLine(d.Hint)
	return d
}

// maxDiagnostics bounds what is kept: beyond it a file is not a plan with
// mistakes but something else.
const maxDiagnostics = 200

// collector gathers what is wrong with one file.
type collector struct {
	file   string
	found  []*Diagnostic
	errors int // of severity error, those not kept included
}

func (c *collector) error(at Position, code, format string, args ...any) *Diagnostic {
	c.errors++
	return c.add(at, SeverityError, code, fmt.Sprintf(format, args...))
}

func (c *collector) warn(at Position, code, format string, args ...any) *Diagnostic {
	return c.add(at, SeverityWarning, code, fmt.Sprintf(format, args...))
}

func (c *collector) add(at Position, severity Severity, code, message string) *Diagnostic {
	d := &Diagnostic{File: c.file, Line: at.Line, Column: at.Column, Severity: severity, Code: code, Message: message}
	if len(c.found) < maxDiagnostics {
		c.found = append(c.found, d)
	}
	return d
}

// merge takes over what was found in another file.
func (c *collector) merge(other *collector) {
	c.errors += other.errors
	c.found = append(c.found, other.found...)
}

// sorted returns everything in the order of the file; what other files and the
// command line add comes behind.
func (c *collector) sorted() []*Diagnostic {
	slices.SortStableFunc(c.found, func(a, b *Diagnostic) int {
		return cmp.Or(
			cmp.Compare(b2i(a.File != c.file), b2i(b.File != c.file)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	for _, d := range c.found {
		d.tidy()
	}
	return c.found
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// err is everything as one error, or nil when nothing forbids to run.
func (c *collector) err() error {
	if c.errors == 0 {
		return nil
	}
	all := &multierror.Error{ErrorFormat: formatDiagnostics}
	for _, d := range c.sorted() {
		all.Errors = append(all.Errors, d)
	}
	kept := 0
	for _, d := range c.found {
		if d.Severity == SeverityError {
			kept++
		}
	}
	if more := c.errors - kept; more > 0 {
		all.Errors = append(all.Errors, &Diagnostic{File: c.file, Severity: SeverityError, Code: codeTooMany,
			Message: fmt.Sprintf("%d more mistakes are not shown", more), Hint: "mend those above first"})
	}
	return all
}

// formatDiagnostics is the text of the whole error: one line each.
func formatDiagnostics(errs []error) string {
	out := ""
	for i, err := range errs {
		if i > 0 {
			out += "\n"
		}
		out += err.Error()
	}
	return out
}
