package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// parse reads the one document of a file. It returns nil when there is none to
// look at; other mistakes are reported and leave what is sound.
func (c *collector) parse(text []byte) *node {
	documents, err := decode(text)
	switch {
	case err != nil:
		c.syntax(text, err)
		return nil
	case len(documents) == 0 || isEmpty(documents[0]):
		c.error(Position{}, codeFileEmpty, "the file is empty").hint("start from one of the plans in plans/")
		return nil
	case len(documents) > 1:
		c.error(position(documents[1]), codeYAMLDocuments, "a second document begins here").
			hint("remove the line with --- and keep one plan in a file")
	}
	r := &resolver{collector: c}
	root := r.node(documents[0].Content[0], 0)
	if r.stopped {
		return nil
	}
	return root
}

func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 ||
		document.Content[0].Kind == yaml.ScalarNode && document.Content[0].Tag == "!!null"
}

// decode reads at most two documents: the second one only to know of it.
func decode(text []byte) (documents []*yaml.Node, err error) {
	// The decoder panics on some malformed input instead of returning an error.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(text))
	for len(documents) < 2 {
		y := new(yaml.Node)
		if err := d.Decode(y); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		documents = append(documents, y)
	}
	return documents, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax reports what the YAML decoder refused. The decoder names the line where
// the broken construct began, or the one before; the place that an operator has
// to mend is the first line after the longest beginning that is in order.
func (c *collector) syntax(text []byte, err error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	message, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		message = m[2]
		line, _ = strconv.Atoi(m[1])
	}
	line = min(max(line, 1), len(lines))
	if l, ok := firstBroken(text, lines); ok {
		line = l
	}
	if at, ok := tabInIndentation(lines, line); ok {
		c.error(at, codeYAMLTab, "a tab in the indentation").hint("indent with spaces")
		return
	}
	at := Position{Line: line, Column: 1 + indentation(lines[line-1])}
	if strings.Contains(message, "unknown anchor") {
		// The name is not shown: an unquoted secret may begin with an asterisk.
		c.error(at, codeYAMLAlias, "an alias (*name) whose anchor (&name) is not defined before it").
			hint("quote the value if it is text that begins with an asterisk")
		return
	}
	d := c.error(at, codeYAMLSyntax, "not valid YAML: %s", plainYAML(message))
	d.hint("look at this line and at the end of the one before: indentation, quotes, brackets")
	if bytes.Contains(lines[line-1], []byte("${")) {
		d.hint("quote the text that holds ${...}")
	}
}

// plainYAML puts the decoder's commonest messages into an operator's words.
func plainYAML(message string) string {
	switch {
	case strings.Contains(message, "mapping values are not allowed"):
		return "a second colon on the line, or a field that is indented below a value"
	case strings.Contains(message, "did not find expected '-' indicator"):
		return "a list item must begin with a dash at the column of the others"
	case strings.Contains(message, "did not find expected key"), strings.Contains(message, "could not find expected ':'"):
		return "a field must be written name: value, at the column of its neighbours"
	case strings.Contains(message, "found unexpected end of stream"):
		return "a quote is opened and never closed"
	case strings.Contains(message, "did not find expected ',' or"):
		return "a bracket is opened and never closed, or a comma is missing"
	case strings.Contains(message, "cannot start any token"):
		return "a value cannot begin with this character: quote it"
	case strings.Contains(message, "control characters are not allowed"):
		return "it holds a control character"
	default:
		return message
	}
}

// searchBudget bounds the bytes that firstBroken decodes.
const searchBudget = 4 << 20

// firstBroken is the first line after the longest beginning that decodes.
func firstBroken(text []byte, lines [][]byte) (int, bool) {
	budget := searchBudget
	size := len(text)
	for n := len(lines) - 1; n >= 0; n-- {
		size -= len(lines[n])
		if budget -= size; budget < 0 {
			return 0, false
		}
		if _, err := decode(text[:size]); err == nil {
			return n + 1, true
		}
	}
	return 1, true
}

// tabInIndentation looks for a tab in the indentation of a line, or of the one before.
func tabInIndentation(lines [][]byte, line int) (Position, bool) {
	for _, l := range []int{line, line - 1} {
		if l < 1 {
			continue
		}
		for i, b := range lines[l-1] {
			if b == '\t' {
				return Position{l, i + 1}, true
			}
			if b != ' ' {
				break
			}
		}
	}
	return Position{}, false
}

func indentation(line []byte) int {
	return len(line) - len(bytes.TrimLeft(line, " "))
}
