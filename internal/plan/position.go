package plan

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// source is a file's text by lines, to find the place of a character inside a scalar.
type source struct{ lines [][]rune }

func newSource(text []byte) *source {
	s := &source{}
	for line := range strings.SplitSeq(string(text), "\n") {
		s.lines = append(s.lines, []rune(strings.TrimSuffix(line, "\r")))
	}
	return s
}

// at is the place of the scalar's character with this number (from 0). Where the
// text of the file cannot be matched with the scalar, it is the scalar's own place.
func (s *source) at(n *node, index int) Position {
	w := walker{source: s, pos: n.pos}
	value := []rune(n.text)
	index = min(index, len(value))
	if !w.begin(n.style) {
		return n.pos
	}
	for _, r := range value[:index] {
		if !w.step(r) {
			return n.pos
		}
	}
	w.settle()
	if index < len(value) && !w.matches(value[index]) {
		return n.pos
	}
	return w.pos
}

// after is the place behind the scalar's last character.
func (s *source) after(n *node) (Position, bool) {
	w := walker{source: s, pos: n.pos}
	if !w.begin(n.style) {
		return n.pos, false
	}
	for _, r := range n.text {
		if !w.step(r) {
			return n.pos, false
		}
	}
	return w.pos, true
}

// walker goes through the text of a scalar in step with its value.
type walker struct {
	*source
	pos    Position
	style  yaml.Style
	indent int // of a block scalar
}

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
const block = yaml.LiteralStyle | yaml.FoldedStyle

// here is the rest of the current line.
func (w *walker) here() []rune {
	if w.pos.Line < 1 || w.pos.Line > len(w.lines) {
		return nil
	}
	line := w.lines[w.pos.Line-1]
	if w.pos.Column < 1 || w.pos.Column > len(line) {
		return nil
	}
	return line[w.pos.Column-1:]
}

// begin moves from the node's place to the first character of its value: past an
// anchor or a tag, the opening quote or the line with the block sign.
func (w *walker) begin(style yaml.Style) bool {
	w.style = style
	for rest := w.here(); len(rest) > 0 && (rest[0] == '&' || rest[0] == '!'); rest = w.here() {
		for len(rest) > 0 && rest[0] != ' ' {
			rest = rest[1:]
			w.pos.Column++
		}
		for len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
			w.pos.Column++
		}
	}
	if style&quoted != 0 {
		w.pos.Column++
	}
	if style&block != 0 {
		w.pos.Line++
		for l := w.pos.Line; l <= len(w.lines); l++ {
			line := string(w.lines[l-1])
			if trimmed := strings.TrimLeft(line, " "); trimmed != "" {
				w.indent = len(line) - len(trimmed)
				break
			}
		}
		w.pos.Column = w.indent + 1
	}
	return w.pos.Line <= len(w.lines)
}

// step passes over the text that stands for one character of the value.
func (w *walker) step(r rune) bool {
	w.settle()
	rest := w.here()
	if len(rest) == 0 {
		return w.lineBreak(r)
	}
	if !w.matches(r) {
		return false
	}
	w.pos.Column += w.width(rest)
	return true
}

// settle moves over blanks that were folded away, to the next character's place.
func (w *walker) settle() {
	if w.style&block != 0 {
		return
	}
	// A trailing blank before a line break belongs to the break.
	rest := w.here()
	if len(rest) > 0 && strings.TrimSpace(string(rest)) == "" {
		w.pos.Column += len(rest)
	}
	// A backslash at the end of a line continues it without a blank.
	if w.style&yaml.DoubleQuotedStyle != 0 && string(rest) == `\` {
		w.pos.Column++
		w.lineBreak(' ')
	}
}

// lineBreak passes a folded or kept line break, which the value has as a space or
// as line feeds.
func (w *walker) lineBreak(r rune) bool {
	if r != ' ' && r != '\n' || w.pos.Line >= len(w.lines) {
		return false
	}
	w.pos.Line++
	if w.style&block != 0 {
		w.pos.Column = w.indent + 1
		return true
	}
	line := w.lines[w.pos.Line-1]
	w.pos.Column = 1
	for w.pos.Column <= len(line) && (line[w.pos.Column-1] == ' ' || line[w.pos.Column-1] == '\t') {
		w.pos.Column++
	}
	return true
}

// matches reports whether the text here can stand for r.
func (w *walker) matches(r rune) bool {
	rest := w.here()
	if len(rest) == 0 {
		return r == ' ' || r == '\n'
	}
	return rest[0] == r || w.style&yaml.DoubleQuotedStyle != 0 && rest[0] == '\\'
}

// width is the number of characters of the file that make up the next one of the value.
func (w *walker) width(rest []rune) int {
	switch {
	case w.style&yaml.SingleQuotedStyle != 0 && rest[0] == '\'':
		return 2
	case w.style&yaml.DoubleQuotedStyle != 0 && rest[0] == '\\' && len(rest) > 1:
		switch rest[1] {
		case 'x':
			return 4
		case 'u':
			return 6
		case 'U':
			return 10
		default:
			return 2
		}
	default:
		return 1
	}
}
