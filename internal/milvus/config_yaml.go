package milvus

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxDepth bounds how deep a configuration may nest, aliases followed.
const maxDepth = 32

// flatten reads one configuration file into values by formatted key, as Milvus's
// file source does with yaml.v2: of a key given twice the last counts and hides
// the first one whole, nested keys are joined, lists become comma-separated text
// without those elements that are maps, and a key without a value is empty text.
func flatten(text string) (map[string]string, []string, error) {
	root, err := parseYAML(text)
	if err != nil || root == nil {
		return nil, nil, err
	}
	f := flattener{values: map[string]string{}, spelled: map[string]string{}}
	if err := f.mapping("", root, 0); err != nil {
		return nil, nil, err
	}
	return f.values, f.notes, nil
}

// parseYAML gives the top-level mapping; nil for a file without one.
func parseYAML(text string) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want keys and values at the top, found something else", root.Line)
	}
	return root, nil
}

type flattener struct {
	values  map[string]string
	spelled map[string]string // formatted key -> as written
	notes   []string
}

func (f *flattener) mapping(prefix string, node *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: nested more than %d deep", node.Line, maxDepth)
	}
	pairs, duplicates := lastOfEach(node)
	for _, d := range duplicates {
		f.notes = append(f.notes, fmt.Sprintf("%s%s is given more than once, the last one (line %d) counts", prefix, d.key.Value, d.key.Line))
	}
	for _, p := range pairs {
		value := resolveAlias(p.value)
		if p.key.Value == "<<" && p.key.Tag == "!!merge" {
			if err := f.merge(prefix, value, depth); err != nil {
				return err
			}
			continue
		}
		key := prefix + p.key.Value
		if value.Kind == yaml.MappingNode {
			if err := f.mapping(key+".", value, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := f.set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// merge takes the keys of "<<: *other" that are not given here already; they come
// first, so that later ones replace them.
func (f *flattener) merge(prefix string, value *yaml.Node, depth int) error {
	if value.Kind == yaml.SequenceNode {
		for _, element := range slices.Backward(value.Content) {
			if err := f.merge(prefix, resolveAlias(element), depth); err != nil {
				return err
			}
		}
		return nil
	}
	if value.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: only keys and values can be merged in", value.Line)
	}
	return f.mapping(prefix, value, depth+1)
}

func (f *flattener) set(key string, value *yaml.Node) error {
	text, err := scalarText(value)
	if err != nil {
		return err
	}
	formatted := formatKey(key)
	if other, ok := f.spelled[formatted]; ok && other != key && f.values[formatted] != text {
		f.notes = append(f.notes, fmt.Sprintf("%s and %s are the same setting to milvus: which one it obeys is not defined", other, key))
	}
	f.values[formatted], f.spelled[formatted] = text, key
	return nil
}

// pair is one key with its value.
type pair struct{ key, value *yaml.Node }

// lastOfEach gives the pairs that count, merges first, and the last of those keys
// that are given more than once.
func lastOfEach(node *yaml.Node) (pairs, duplicates []pair) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		p := pair{node.Content[i], node.Content[i+1]}
		same := func(o pair) bool { return o.key.Value == p.key.Value }
		if slices.ContainsFunc(pairs, same) {
			pairs = slices.DeleteFunc(pairs, same)
			duplicates = append(slices.DeleteFunc(duplicates, same), p)
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return mergeRank(a) - mergeRank(b) })
	return pairs, duplicates
}

func mergeRank(p pair) int {
	if p.key.Tag == "!!merge" {
		return 0
	}
	return 1
}

func resolveAlias(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// scalarText is the text that Milvus keeps of a value.
func scalarText(node *yaml.Node) (string, error) {
	node = resolveAlias(node)
	if node.Kind == yaml.SequenceNode {
		var elements []string
		for _, element := range node.Content {
			if resolveAlias(element).Kind == yaml.MappingNode {
				continue
			}
			text, err := scalarText(element)
			if err != nil {
				return "", err
			}
			elements = append(elements, text)
		}
		return strings.Join(elements, ","), nil
	}
	switch {
	case node.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("line %d: want a plain value", node.Line)
	case isNull(node):
		return "", nil
	case node.Tag == "!!str":
		return oldBool(node), nil
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// oldBool reads yes, no, on and off as YAML 1.1 did, which is what Milvus's parser
// follows; quoted they are text.
func oldBool(node *yaml.Node) string {
	if node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return node.Value
	}
	switch node.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return "false"
	}
	return node.Value
}
