package milvus

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"gopkg.in/yaml.v3"
)

// walKey is the setting that names the WAL.
const walKey = "mq.type"

// SetWALType makes one configuration file name a WAL and leaves every other byte,
// comments and order included, as it is. Of several "mq:" the last one counts for
// Milvus, so that one is edited. A file that does not set mq.type gets it at its end
// or below its last "mq:".
//
// It returns the text unchanged when that already names the WAL, and an error,
// never a guess, when the file is not YAML or sets the key in a way that cannot be
// edited in one place.
func SetWALType(text string, wal WAL) (string, error) {
	before, _, err := flatten(text)
	if err != nil {
		return "", err
	}
	if before[formatKey(walKey)] == wal.String() {
		return text, nil
	}
	edited, err := editWALType(text, wal.String())
	if err != nil {
		return "", err
	}
	return edited, onlyChanged(before, edited, wal.String())
}

// onlyChanged proves that an edit did what it should and nothing else.
func onlyChanged(before map[string]string, edited, wal string) error {
	after, _, err := flatten(edited)
	if err != nil {
		return fmt.Errorf("the file cannot be edited automatically: %w", err)
	}
	want := maps.Clone(before)
	if want == nil {
		want = map[string]string{}
	}
	want[formatKey(walKey)] = wal
	// An "mq:" without a value was a setting of its own.
	delete(want, "mq")
	delete(after, "mq")
	if !maps.Equal(want, after) {
		return errors.New("the file cannot be edited automatically: more than mq.type would change")
	}
	return nil
}

func editWALType(text, wal string) (string, error) {
	root, err := parseYAML(text)
	if err != nil {
		return "", err
	}
	if root == nil {
		return appendBlock(text, wal), nil
	}
	if root.Style&yaml.FlowStyle != 0 {
		return "", fmt.Errorf("line %d: the file is one flow mapping {...}: set mq.type by hand", root.Line)
	}
	pairs, _ := lastOfEach(root)
	var last *pair
	for i, p := range pairs {
		key := formatKey(p.key.Value)
		if key == "mq" || key == formatKey(walKey) {
			if last != nil {
				return "", fmt.Errorf("lines %d and %d both concern mq.type: keep one of them", last.key.Line, p.key.Line)
			}
			last = &pairs[i]
		}
	}
	switch {
	case last == nil:
		return appendBlock(text, wal), nil
	case formatKey(last.key.Value) == formatKey(walKey):
		return replaceScalar(text, last.value, wal)
	case isNull(last.value):
		return insertBelow(text, last.key, last.key.Column+1, "type: "+wal), nil
	case last.value.Kind != yaml.MappingNode:
		return "", fmt.Errorf("line %d: mq is no mapping of its own: set mq.type by hand", last.key.Line)
	}
	return editBlock(text, *last, wal)
}

// editBlock sets type in the mapping below mq.
func editBlock(text string, mq pair, wal string) (string, error) {
	inner, _ := lastOfEach(mq.value)
	for _, p := range inner {
		if formatKey(p.key.Value) == "type" {
			return replaceScalar(text, p.value, wal)
		}
	}
	if mq.value.Style&yaml.FlowStyle != 0 || len(inner) == 0 {
		return "", fmt.Errorf("line %d: mq is written in a form that is not edited automatically: set mq.type by hand", mq.key.Line)
	}
	return insertBelow(text, mq.key, inner[0].key.Column-1, "type: "+wal), nil
}

// replaceScalar puts a plain value where a scalar stands, quotes included.
func replaceScalar(text string, node *yaml.Node, value string) (string, error) {
	if node.Kind != yaml.ScalarNode || node.Anchor != "" || node.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return "", fmt.Errorf("line %d: mq.type is no plain value of its own: set it by hand", node.Line)
	}
	lines := strings.SplitAfter(text, "\n")
	line := lines[node.Line-1]
	if isNull(node) && node.Value == "" {
		lines[node.Line-1] = fillEmpty(line, value)
		return strings.Join(lines, ""), nil
	}
	start := byteColumn(line, node.Column)
	end := start + scalarWidth(line[start:], node)
	if end <= start {
		return "", fmt.Errorf("line %d: mq.type spans several lines: set it by hand", node.Line)
	}
	lines[node.Line-1] = line[:start] + value + line[end:]
	return strings.Join(lines, ""), nil
}

// fillEmpty writes a value behind the colon of "type:".
func fillEmpty(line, value string) string {
	colon := strings.LastIndex(strings.SplitN(line, "#", 2)[0], ":")
	return line[:colon+1] + " " + value + line[colon+1:]
}

// scalarWidth is how many bytes a scalar takes on its line; 0 when it goes on
// below.
func scalarWidth(rest string, node *yaml.Node) int {
	for quote, style := range map[string]yaml.Style{`"`: yaml.DoubleQuotedStyle, `'`: yaml.SingleQuotedStyle} {
		if node.Style&style == 0 {
			continue
		}
		if end := strings.Index(rest[1:], quote); strings.HasPrefix(rest, quote) && end >= 0 {
			return end + 2
		}
		return 0
	}
	if !strings.HasPrefix(rest, node.Value) {
		return 0
	}
	return len(node.Value)
}

// byteColumn turns the parser's column, counted in characters from 1, into a byte offset.
func byteColumn(line string, column int) int {
	offset := 0
	for i := range line {
		if column--; column == 0 {
			return i
		}
		offset = i
	}
	return offset + 1
}

func insertBelow(text string, key *yaml.Node, indent int, entry string) string {
	lines := strings.SplitAfter(text, "\n")
	above := lines[key.Line-1]
	ending := lineEnding(text)
	if !strings.HasSuffix(above, "\n") {
		above += ending
	}
	lines[key.Line-1] = above + strings.Repeat(" ", indent) + entry + ending
	return strings.Join(lines, "")
}

func appendBlock(text, wal string) string {
	ending := lineEnding(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += ending
	}
	return text + "mq:" + ending + "  type: " + wal + ending
}

func lineEnding(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}
