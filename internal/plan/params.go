package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
)

// param is a declared parameter and, in the end, its value.
type param struct {
	name     string
	pos      Position
	typ      string // one of paramTypes; "": the declaration is wrong
	enum     []any
	optional bool // without a value it is empty
	value    any  // string, int64, bool or []string
	hasValue bool
	bad      bool // its value was reported as wrong
	used     bool // an expression names it
}

func (p *param) celType() *cel.Type {
	switch p.typ {
	case "string":
		return cel.StringType
	case "int":
		return cel.IntType
	case "bool":
		return cel.BoolType
	case "list":
		return cel.ListType(cel.StringType)
	default:
		return cel.DynType
	}
}

func (p *param) zero() any {
	switch p.typ {
	case "int":
		return int64(0)
	case "bool":
		return false
	case "list":
		return []string{}
	default:
		return ""
	}
}

var idRegexp = regexp.MustCompile(idPattern)

// celReserved are words that CEL does not take for names.
var celReserved = []string{"in", "true", "false", "null"}

// declareParams reads the params section.
func (k *checker) declareParams(section *node) {
	k.params = map[string]*param{}
	if section == nil || !k.isMapping(section, "params") {
		return
	}
	for _, e := range section.entries {
		p := &param{name: e.key, pos: e.keyPos}
		k.params[p.name] = p
		k.paramNames = append(k.paramNames, p.name)
		if !idRegexp.MatchString(p.name) || slices.Contains(celReserved, p.name) {
			k.error(e.keyPos, codeParamName, "a param cannot be called %q", p.name).
				hint("begin with a lower case letter and use letters, digits and _: expressions name it params.NAME")
		}
		k.declareParam(p, e.value)
	}
}

func (k *checker) declareParam(p *param, n *node) {
	if n.kind != nodeMap {
		k.error(n.pos, codeType, "%s: want a mapping, found %s", p.name, n.found()).
			hint("write %s: {type: string, default: ...}", p.name)
		return
	}
	k.known(n, []string{"type", "default", "enum", "description", "required"}, "a param")
	k.paramType(p, n)
	if d := n.get("description"); d != nil && d.kind != nodeString {
		k.wrongType(d, "description", "string")
	}
	k.paramEnum(p, n.get("enum"))
	deflt := n.get("default")
	if deflt != nil && p.typ != "" {
		k.paramDefault(p, deflt)
	}
	required := n.get("required")
	switch {
	case required == nil:
	case required.kind != nodeBool:
		k.wrongType(required, "required", "bool")
	case required.value == true && deflt != nil:
		k.error(required.pos, codeParamRequired, "%s is required and has a default, which would never be used", p.name).
			hint("remove one of the two")
	case required.value == false && !p.hasValue:
		p.optional, p.value, p.hasValue = true, p.zero(), true
	}
}

func (k *checker) paramType(p *param, n *node) {
	t := n.get("type")
	switch {
	case t == nil:
		k.error(p.pos, codeMissing, "%s has no type", p.name).hint("add type: string (or int, bool, list)")
	case t.kind != nodeString:
		k.wrongType(t, "type", "string")
	case !slices.Contains(paramTypes, t.text):
		k.error(t.pos, codeValue, "a param cannot be of type %q", t.text).Hint = didYouMean(t.text, paramTypes)
	default:
		p.typ = t.text
	}
}

func (k *checker) paramEnum(p *param, n *node) {
	if n == nil || p.typ == "" {
		return
	}
	if n.kind != nodeList || len(n.items) == 0 {
		k.error(n.pos, codeType, "enum: want a list of the values allowed, found %s", n.found()).hint("write enum: [a, b]")
		return
	}
	item := p.typ
	if item == "list" {
		item = "string" // the items that the list may have
	}
	for _, i := range n.items {
		v, problem := paramValue(i, item)
		if problem != "" {
			k.error(i.pos, codeParamDefault, "enum of %s: %s", p.name, problem).hint("%s", paramHint(i, item))
			continue
		}
		p.enum = append(p.enum, v)
	}
}

func (k *checker) paramDefault(p *param, n *node) {
	if n.isTemplate() {
		k.error(n.pos, codeExprPlace, "a default cannot be an expression").hint("write the value itself")
		p.bad = true
		return
	}
	v, problem := paramValue(n, p.typ)
	if problem == "" {
		problem = p.disallowed(v)
	}
	if problem != "" {
		k.error(n.pos, codeParamDefault, "default of %s: %s", p.name, problem).hint("%s", paramHint(n, p.typ))
		p.bad = true
		return
	}
	p.value, p.hasValue = v, true
}

// disallowed says why v is not one of the values that enum lists, or "".
func (p *param) disallowed(v any) string {
	if len(p.enum) == 0 {
		return ""
	}
	values := []any{v}
	if list, ok := v.([]string); ok {
		values = nil
		for _, item := range list {
			values = append(values, item)
		}
	}
	for _, v := range values {
		if !slices.Contains(p.enum, v) {
			return fmt.Sprintf("%v is not one of %s", v, strings.ReplaceAll(strings.Trim(fmt.Sprint(p.enum), "[]"), " ", ", "))
		}
	}
	return ""
}

// paramValue reads a value of a param's type, or says why it is none.
func paramValue(n *node, typ string) (any, string) {
	switch {
	case typ == "string" && n.kind == nodeString, typ == "int" && n.kind == nodeInt, typ == "bool" && n.kind == nodeBool:
		return n.value, ""
	case typ == "list" && n.kind == nodeList:
		list := []string{}
		for _, item := range n.items {
			if item.kind != nodeString {
				return nil, "want a list of strings, found one item that is " + item.found()
			}
			if item.isTemplate() {
				return nil, "an expression is not a value"
			}
			list = append(list, item.text)
		}
		return list, ""
	default:
		return nil, fmt.Sprintf("want %s, found %s", typ, n.found())
	}
}

// paramHint is what to do about a value of another type.
func paramHint(n *node, typ string) string {
	switch {
	case typ == "string" && n.kind != nodeList && n.kind != nodeMap && n.kind != nodeNull && n.kind != nodeString:
		return fmt.Sprintf("quote it: %q", n.text)
	case typ == "list":
		return `write a list of quoted texts: ["a", "b"]`
	case typ == "bool":
		return "write true or false, without quotes"
	case typ == "int":
		return "write a whole number, without quotes"
	default:
		return "give a value that the param allows"
	}
}

// readValues applies one values file: a flat mapping of names to values.
func (k *checker) readValues(path string, readFile func(string) ([]byte, error)) {
	c := &collector{file: path}
	defer k.merge(c)
	data, ok := c.read(path, readFile)
	if !ok {
		k.blind = true
		return
	}
	root := c.parse(data)
	if root == nil {
		k.blind = true
		return
	}
	if root.kind != nodeMap {
		k.blind = true
		c.error(root.pos, codeType, "want name: value lines, found %s", root.found()).hint("write one line for each param: name: value")
		return
	}
	for _, e := range root.entries {
		p, ok := k.params[e.key]
		if !ok {
			k.unknownParam(c, e.keyPos, e.key)
			continue
		}
		k.giveNode(c, p, e.value)
	}
}

func (k *checker) unknownParam(c *collector, at Position, name string) {
	d := c.error(at, codeParamUnknown, "the plan has no param %s", name)
	d.Hint = didYouMean(name, k.paramNames)
	if len(k.paramNames) == 0 {
		d.hint("remove it: this plan has no params")
	}
}

func (k *checker) giveNode(c *collector, p *param, n *node) {
	if p.typ == "" {
		return
	}
	problem := "an expression is not a value"
	var v any
	if !n.isTemplate() {
		if v, problem = paramValue(n, p.typ); problem == "" {
			problem = p.disallowed(v)
		}
	}
	if problem != "" {
		p.bad = true
		d := c.error(n.pos, codeParamValue, "%s: %s", p.name, problem)
		d.hint("%s", paramHint(n, p.typ))
		if n.kind == nodeMap {
			d.hint("write one line for each param, not nested")
		}
		return
	}
	p.value, p.hasValue, p.optional = v, true, false
}

// set applies one "name=value" of the command line.
func (k *checker) set(assignment string) {
	name, value, ok := strings.Cut(assignment, "=")
	c := &collector{file: "--set " + oneLine(name)}
	defer func() {
		for _, d := range c.found {
			d.Line, d.Column = 0, 0 // the command line has no lines
		}
		k.merge(c)
	}()
	if !ok || name == "" {
		c.file = "--set"
		c.error(Position{}, codeSetForm, "%q is not name=value", assignment).hint("write --set name=value")
		return
	}
	p, ok := k.params[name]
	switch {
	case !ok:
		k.unknownParam(c, Position{}, name)
	case p.typ == "list" && strings.HasPrefix(value, "["):
		if root := c.parse([]byte(value)); root != nil {
			k.giveNode(c, p, root)
		}
	default:
		k.giveNode(c, p, setNode(value, p.typ))
	}
}

// setNode is the text of a --set as the param's type wants it; when it does not
// fit it stays text, which is then reported as such.
func setNode(value, typ string) *node {
	n := &node{kind: nodeString, text: value, value: value}
	switch typ {
	case "int":
		if i, err := strconv.ParseInt(value, 10, 64); err == nil {
			n.kind, n.value = nodeInt, i
		}
	case "bool":
		if value == "true" || value == "false" {
			n.kind, n.value = nodeBool, value == "true"
		}
	case "list":
		list := &node{kind: nodeList}
		for item := range strings.SplitSeq(value, ",") {
			if value != "" {
				list.items = append(list.items, &node{kind: nodeString, text: item, value: item})
			}
		}
		return list
	}
	return n
}

// settleParams reports params without a value and params that nothing uses.
func (k *checker) settleParams() {
	for _, name := range k.paramNames {
		p := k.params[name]
		if !p.hasValue && !p.bad && !k.blind && p.typ != "" {
			k.error(p.pos, codeParamMissing, "param %s has no value", name).
				hint("give --set %s=VALUE, or a default here", name)
		}
		if !p.used && k.errors == 0 { // what is wrong may be the place that uses it
			k.warn(p.pos, codeParamUnused, "param %s is used nowhere", name).
				hint("remove it, or write ${params.%s} where it belongs", name)
		}
	}
}
