package console

import (
	"strings"
	"unicode/utf8"

	"runbook/internal/event"
)

// widestSubject bounds the column of subjects in a block of rows.
const widestSubject = 32

// wrap breaks text at spaces so that no line is longer than width, counting the
// indent that the later lines get. Words are never broken, nor numbers with
// them. Width 0 does not wrap. first is what the first line already holds.
func wrap(text string, width, first, indent int) []string {
	var lines []string
	for paragraph := range strings.Lines(text) {
		lines = append(lines, wrapLine(strings.TrimRight(paragraph, "\n"), width, first, indent)...)
		first = indent
	}
	return lines
}

func wrapLine(text string, width, first, indent int) []string {
	if width == 0 || first+utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line, column := "", first
	for _, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case line == "":
		case column+1+length > width:
			lines = append(lines, line)
			line, column = "", indent
		default:
			line += " "
			column++
		}
		line += word
		column += length
	}
	return append(lines, line)
}

// text writes prefix and text, wrapped under the prefix.
func (t Terminal) text(b *strings.Builder, indent int, prefix, painted, text string) {
	pad := strings.Repeat(" ", indent)
	hang := indent + utf8.RuneCountInString(prefix)
	if t.Width > 0 && hang > t.Width/2 {
		hang = indent + 2
	}
	b.WriteString(pad + painted)
	for i, line := range wrap(text, t.Width, indent+utf8.RuneCountInString(prefix), hang) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", hang))
		}
		b.WriteString(line + "\n")
	}
	if text == "" {
		b.WriteString("\n")
	}
}

// rows writes subjects and values as two columns, details below the values.
func (t Terminal) rows(b *strings.Builder, indent int, rows []event.Line) {
	column := 0
	for _, row := range rows {
		column = max(column, min(utf8.RuneCountInString(row.Subject), widestSubject))
	}
	for _, row := range rows {
		subject := row.Subject + strings.Repeat(" ", max(0, column-utf8.RuneCountInString(row.Subject))) + "  "
		t.text(b, indent, subject, t.dim(subject), row.Value)
		under := indent + column + 2
		if t.Width > 0 {
			under = min(under, max(indent+2, t.Width/4))
		}
		for _, detail := range row.Detail {
			t.text(b, under, "- ", "- ", detail)
		}
	}
}
