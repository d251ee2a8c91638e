package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// What a node is. A scalar's kind is what YAML's core schema makes of its text.
type nodeKind int

const (
	nodeNull nodeKind = iota
	nodeString
	nodeBool
	nodeInt
	nodeFloat
	nodeList
	nodeMap
)

// node is a piece of a YAML document with its place: aliases are expanded, merge
// keys applied, and every key is text that occurs once.
type node struct {
	kind    nodeKind
	pos     Position // in the file; of an aliased node: where its text is
	text    string   // of a scalar
	value   any      // of a scalar: nil, string, bool, int64, float64
	style   yaml.Style
	items   []*node
	entries []entry        // of a mapping, in the order of the file
	index   map[string]int // of entries, by key
	tmpl    *template      // set when the text holds expressions and was compiled
}

type entry struct {
	key    string
	keyPos Position
	value  *node
}

// get returns the value under key, or nil.
func (n *node) get(key string) *node {
	if e := n.entry(key); e != nil {
		return e.value
	}
	return nil
}

func (n *node) entry(key string) *entry {
	if n == nil {
		return nil
	}
	if i, ok := n.index[key]; ok {
		return &n.entries[i]
	}
	return nil
}

func (n *node) add(e entry) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[e.key] = len(n.entries)
	n.entries = append(n.entries, e)
}

// found names the node as an operator sees it, with its text where that is short.
func (n *node) found() string {
	short := func(kind string) string {
		if len([]rune(n.text)) > 40 {
			return kind
		}
		return fmt.Sprintf("%s (%s)", kind, n.text)
	}
	switch n.kind {
	case nodeNull:
		return "nothing"
	case nodeString:
		if len([]rune(n.text)) > 40 {
			return "string"
		}
		return fmt.Sprintf("string %q", n.text)
	case nodeBool:
		return short("bool")
	case nodeInt:
		return short("int")
	case nodeFloat:
		if integer.MatchString(n.text) {
			return short("int beyond 64 bits")
		}
		return short("float")
	case nodeList:
		return "a list"
	default:
		return "a mapping"
	}
}

var integer = regexp.MustCompile(`^[-+]?[0-9_]+$`)

// kindName is found without the text, for values that must not be shown.
func (n *node) kindName() string {
	return [...]string{"nothing", "string", "bool", "int", "float", "a list", "a mapping"}[n.kind]
}

// json is the node as encoding/json would have read it.
func (n *node) json() any {
	switch n.kind {
	case nodeList:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.json()
		}
		return items
	case nodeMap:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = e.value.json()
		}
		return m
	case nodeFloat:
		if f := n.value.(float64); math.IsInf(f, 0) || math.IsNaN(f) {
			return n.text // JSON has no such number
		}
		return n.value
	default:
		return n.value
	}
}

// Bounds of a document. A plan is a page of text: these are far beyond it.
const (
	maxDepth   = 64
	maxAliased = 10_000 // nodes that come from expanding aliases
)

// resolver turns yaml.v3's nodes into ours.
type resolver struct {
	*collector
	open    []*yaml.Node // anchors being expanded, outermost first
	aliased int
	stopped bool // a bound was passed: nothing more is reported
}

func position(y *yaml.Node) Position { return Position{y.Line, y.Column} }

func (r *resolver) node(y *yaml.Node, depth int) *node {
	n := &node{pos: position(y), style: y.Style}
	if depth > maxDepth {
		r.stop(n.pos, codeYAMLDepth, "nested deeper than %d levels", maxDepth)
	}
	if len(r.open) > 0 {
		if r.aliased++; r.aliased > maxAliased {
			r.stop(position(r.open[0]), codeYAMLAlias, "the aliases of this document expand to more than %d values", maxAliased)
		}
	}
	if r.stopped {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.alias(y, depth)
	case yaml.SequenceNode:
		n.kind = nodeList
		r.collection(y, "!!seq")
		for _, item := range y.Content {
			n.items = append(n.items, r.node(item, depth+1))
		}
	case yaml.MappingNode:
		n.kind = nodeMap
		r.collection(y, "!!map")
		r.entries(n, y, depth)
	default:
		r.scalar(n, y)
	}
	return n
}

func (r *resolver) stop(at Position, code, format string, args ...any) {
	if !r.stopped {
		r.error(at, code, format, args...)
	}
	r.stopped = true
}

func (r *resolver) alias(y *yaml.Node, depth int) *node {
	if slices.Contains(r.open, y.Alias) {
		r.stop(position(y), codeYAMLAlias, "this alias is inside what it stands for")
		return &node{pos: position(y)}
	}
	r.open = append(r.open, y.Alias)
	n := r.node(y.Alias, depth)
	r.open = r.open[:len(r.open)-1]
	return n
}

// collection refuses explicit tags: a plan needs none, and what they would mean
// (sets, ordered maps, types of other programs) is not supported.
func (r *resolver) collection(y *yaml.Node, plain string) {
	if y.Style&yaml.TaggedStyle != 0 && y.ShortTag() != plain {
		r.tag(y)
	}
}

func (r *resolver) tag(y *yaml.Node) {
	// The tag itself is not shown: an unquoted secret may begin with an exclamation mark.
	r.error(position(y), codeYAMLTag, "a tag (!name) has no meaning here").
		hint("quote the value if it is text that begins with an exclamation mark")
}

func (r *resolver) scalar(n *node, y *yaml.Node) {
	n.text = y.Value
	tag := y.ShortTag()
	if y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 &&
		y.Style&yaml.TaggedStyle == 0 {
		tag = "!!str"
	}
	switch tag {
	case "!!str", "!!timestamp":
		n.kind, n.value = nodeString, y.Value
	case "!!null":
		n.kind = nodeNull
	case "!!bool", "!!int", "!!float":
		r.number(n, y)
	case "!!merge": // a merge sign in the place of a value is text
		n.kind, n.value = nodeString, y.Value
	default:
		r.tag(y)
		n.kind, n.value = nodeString, y.Value
	}
}

// number reads a scalar that YAML takes for a bool or a number.
func (r *resolver) number(n *node, y *yaml.Node) {
	var v any
	if err := y.Decode(&v); err != nil {
		r.tag(y) // "!!int abc": only an explicit tag can contradict the text
		n.kind, n.value = nodeString, y.Value
		return
	}
	switch v := v.(type) {
	case bool:
		n.kind, n.value = nodeBool, v
	case int:
		n.kind, n.value = nodeInt, int64(v)
	case int64:
		n.kind, n.value = nodeInt, v
	case uint64:
		n.kind, n.value = nodeFloat, float64(v) // beyond int64: no field can hold it
	case float64:
		n.kind, n.value = nodeFloat, v
	default:
		n.kind, n.value = nodeString, y.Value
	}
}

func (r *resolver) entries(n *node, y *yaml.Node, depth int) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" && key.Style&yaml.TaggedStyle == 0 {
			merges = append(merges, value)
			continue
		}
		name, ok := r.key(key)
		if !ok {
			continue
		}
		if earlier := n.entry(name); earlier != nil {
			r.error(position(key), codeYAMLDuplicate, "%s is given twice: the first is on line %d", name, earlier.keyPos.Line).
				hint("remove one of them")
			continue
		}
		n.add(entry{key: name, keyPos: position(key), value: r.node(value, depth+1)})
	}
	for _, m := range merges {
		r.merge(n, m, depth)
	}
}

func (r *resolver) key(y *yaml.Node) (string, bool) {
	at := position(y)
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	if y.Kind != yaml.ScalarNode {
		r.error(at, codeYAMLKey, "a key must be text, found a list or a mapping").
			hint(`quote a value that begins with "{" or "["`)
		return "", false
	}
	var n node
	r.scalar(&n, y)
	if n.kind != nodeString {
		r.error(at, codeYAMLKey, "a key must be text, found %s", n.found()).hint("quote it: %q", n.text)
		return "", false
	}
	return n.text, true
}

// merge applies "<<: *base" or "<<: [*a, *b]": what is there already stays.
func (r *resolver) merge(n *node, y *yaml.Node, depth int) {
	from := r.node(y, depth+1)
	sources := []*node{from}
	if from.kind == nodeList {
		sources = from.items
	}
	for _, s := range sources {
		if s.kind != nodeMap {
			if !r.stopped {
				r.error(position(y), codeYAMLMerge, "<< merges mappings, found %s", s.kindName()).
					hint("write <<: *anchor, where the anchor names a mapping")
			}
			return
		}
		for _, e := range s.entries {
			if n.entry(e.key) == nil {
				n.add(e)
			}
		}
	}
}

// isTemplate reports whether the scalar holds an expression.
func (n *node) isTemplate() bool { return n.kind == nodeString && strings.Contains(n.text, "${") }
