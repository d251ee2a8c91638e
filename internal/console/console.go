// Package console is what people and programs see of a command. It decides how
// things are shown and never what is done.
//
// The rules:
//
//   - Results go to stdout: what a dry run found, what a step did, how a run ended.
//     Everything that only matters while waiting goes to stderr: the step under
//     way, notes, warnings, progress, errors. With -o json all of it is events on
//     stdout, one versioned object a line, and stderr stays empty.
//   - Lower case, no full stop. First what happened and where, then what was left,
//     then `hint:` lines, each starting with what to do.
//   - The same words in text and in JSON.
//   - One updating progress line on a terminal, a line every ten seconds elsewhere.
//     Before a wait starts it is said what is waited for and how long at most.
//   - Lines are wrapped to the terminal's width, never cut; a file or a pipe gets
//     them unwrapped. Colour only on a terminal, and not when NO_COLOR is set; a
//     colour never carries a meaning that the words do not.
//   - Known secrets are masked in everything that leaves, as the last line of
//     defence behind typed secrets.
package console

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Terminal describes one output stream.
type Terminal struct {
	W     io.Writer
	TTY   bool // a person watches
	Width int  // columns; 0: do not wrap
	Color bool
}

const (
	fallbackWidth = 80
	minWidth      = 20
)

// TerminalOf describes file; what is written goes through mask first.
func TerminalOf(file *os.File, mask *Redactor) Terminal {
	t := Terminal{W: mask.Writer(file)}
	fd := int(file.Fd())
	if !term.IsTerminal(fd) {
		return t
	}
	t.TTY = os.Getenv("TERM") != "dumb"
	t.Color = t.TTY && os.Getenv("NO_COLOR") == ""
	t.Width = fallbackWidth
	if width, _, err := term.GetSize(fd); err == nil && width > 0 {
		t.Width = width
	} else if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		t.Width = width
	}
	t.Width = max(t.Width, minWidth)
	return t
}

func (t Terminal) paint(code, text string) string {
	if !t.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t Terminal) bold(text string) string   { return t.paint("1", text) }
func (t Terminal) red(text string) string    { return t.paint("31;1", text) }
func (t Terminal) yellow(text string) string { return t.paint("33", text) }
func (t Terminal) dim(text string) string    { return t.paint("2", text) }
