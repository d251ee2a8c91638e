package plan

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// maxFileSize bounds a plan and a values file.
const maxFileSize = 1 << 20

// readRegular reads a regular file of at most maxFileSize bytes and one more, by
// which the caller sees that it is too big. Other kinds of file are refused
// before they are opened: opening a pipe would wait for its writer.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegularError{info.Mode()}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileSize+1))
}

type notRegularError struct{ mode fs.FileMode }

func (e notRegularError) Error() string {
	switch {
	case e.mode.IsDir():
		return "this is a directory"
	case e.mode&fs.ModeNamedPipe != 0:
		return "this is a named pipe"
	case e.mode&fs.ModeSocket != 0:
		return "this is a socket"
	default:
		return "this is a device"
	}
}

// read returns the text of a file without its byte order mark, or reports why not.
func (c *collector) read(path string, readFile func(string) ([]byte, error)) ([]byte, bool) {
	if readFile == nil {
		readFile = readRegular
	}
	data, err := readFile(path)
	if err != nil {
		c.unreadable(err)
		return nil, false
	}
	if len(data) > maxFileSize {
		c.error(Position{}, codeFileSize, "the file is larger than 1 MiB").hint("give a plan; this is something else")
		return nil, false
	}
	text := bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(text) {
		at := invalidAt(text)
		c.error(at, codeFileEncoding, "this is not UTF-8 text").hint("save the file as UTF-8")
		return nil, false
	}
	return text, true
}

func (c *collector) unreadable(err error) {
	var pathErr *fs.PathError
	kind, isKind := errors.AsType[notRegularError](err)
	switch {
	case isKind && kind.mode.IsDir():
		c.error(Position{}, codeFileKind, "%v", kind).hint("name the plan file in it")
	case isKind:
		c.error(Position{}, codeFileKind, "%v", kind).hint("give a regular file")
	case errors.Is(err, fs.ErrNotExist):
		c.error(Position{}, codeFileUnreadable, "there is no such file").hint("check the path")
	case errors.As(err, &pathErr):
		c.error(Position{}, codeFileUnreadable, "cannot read: %v", pathErr.Err)
	default:
		c.error(Position{}, codeFileUnreadable, "cannot read: %v", err)
	}
}

// invalidAt is the place of the first byte that is not UTF-8.
func invalidAt(text []byte) Position {
	at := Position{Line: 1, Column: 1}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			break
		}
		at.Column++
		if r == '\n' {
			at.Line, at.Column = at.Line+1, 1
		}
		text = text[size:]
	}
	return at
}
