package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checker goes through a document once: it reports what is wrong and compiles
// the expressions on its way.
type checker struct {
	*collector
	*grammar
	src        *source
	params     map[string]*param
	paramNames []string // in the order of the file
	nodes      []*stepNode
	blind      bool // a values file could not be read: params may have values
	exprs      *expressions
	secrets    []*node // written in clear
	sections   *node   // the instance section
}

// stepNode is a step on its way from the document to the plan.
type stepNode struct {
	node    *node
	id      string     // "": none or malformed
	pos     Position   // of the id
	typ     *stepShape // nil: unknown
	typePos Position
	with    *node // nil: none, or not a mapping
	sound   bool  // the inputs have no mistake
	expect  []*Expectation
	inputs  any // decoded, when they depend on nothing that is not known yet
}

// name is how messages call the step.
func (s *stepNode) name() string {
	if s.id == "" {
		return fmt.Sprintf("the step on line %d", s.pos.Line)
	}
	return fmt.Sprintf("step %s (line %d)", s.id, s.pos.Line)
}

// rootFields are the sections of a plan in the order in which people write them.
var rootFields = []string{"apiVersion", "kind", "metadata", "params", "instance", "steps"}

func (k *checker) root(n *node) {
	known := rootFields
	if k.instance == nil {
		known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return s == "instance" })
	}
	k.known(n, known, "a plan")
	k.metadata(n)
}

// header checks what tells a plan from other documents. It reports whether the
// rest is worth a look: a manifest for another program would only draw noise.
func (k *checker) header(n *node) bool {
	version := k.constant(n, "apiVersion", apiVersion, codeAPIVersion)
	kind := k.constant(n, "kind", planKind, codeKind)
	return version || kind || n.get("apiVersion") == nil || n.get("kind") == nil
}

// constant checks a field that has only one value.
func (k *checker) constant(n *node, field, want, code string) bool {
	v := n.get(field)
	switch {
	case v == nil:
		k.error(n.pos, code, "%s is missing", field).hint("begin the plan with %s: %s", field, want)
	case v.kind != nodeString || v.text != want:
		k.error(v.pos, code, "%s: want %s, found %s", field, want, v.found()).hint("write %s: %s", field, want)
	default:
		return true
	}
	return false
}

var nameRegexp = regexp.MustCompile(namePattern)

const maxNameLength = 63

func (k *checker) metadata(root *node) {
	n := root.get("metadata")
	if n == nil {
		k.error(root.pos, codeMissing, "the plan has no metadata").hint("add metadata: {name: NAME}")
		return
	}
	if !k.isMapping(n, "metadata") {
		return
	}
	k.known(n, []string{"name", "description"}, "metadata")
	if d := n.get("description"); d != nil {
		k.plainString(d, "description")
	}
	name := n.get("name")
	switch {
	case name == nil:
		k.error(n.pos, codeMissing, "the plan has no name").hint("add name: NAME to metadata")
	case !k.plainString(name, "name"):
	case !nameRegexp.MatchString(name.text) || len(name.text) > maxNameLength:
		k.error(name.pos, codeName, "a plan cannot be called %q", name.text).
			hint("use lower case letters, digits and dashes, at most %d", maxNameLength)
	}
}

// plainString reports a text that is none, or that holds an expression.
func (k *checker) plainString(n *node, label string) bool {
	if n.kind != nodeString {
		k.wrongType(n, label, "string")
		return false
	}
	if n.isTemplate() {
		k.error(n.pos, codeExprPlace, "%s cannot hold an expression", label).hint("write the text itself")
		return false
	}
	return true
}

// known reports the fields that do not exist.
func (k *checker) known(n *node, names []string, of string) {
	for _, e := range n.entries {
		if !slices.Contains(names, e.key) {
			k.error(e.keyPos, codeUnknownField, "%s has no field %s", of, e.key).Hint = didYouMean(e.key, names)
		}
	}
}

func (k *checker) isMapping(n *node, label string) bool {
	if n.kind == nodeMap {
		return true
	}
	d := k.error(n.pos, codeType, "%s: want a mapping, found %s", label, n.found())
	if n.kind == nodeNull {
		d.hint("indent its fields below it, or remove the line")
	} else {
		d.hint("write its fields below it: name: value")
	}
	return false
}

// wrongType reports a value of another type and how to write it.
func (k *checker) wrongType(n *node, label, want string) {
	k.error(n.pos, codeType, "%s: want %s, found %s", label, want, n.found()).Hint = typeHint(n, want)
}

// typeHint is how to write a value of the type that is wanted.
func typeHint(n *node, want string) string {
	collection := n.kind == nodeList || n.kind == nodeMap
	switch {
	case n.kind == nodeNull:
		return "give a value, or remove the line"
	case want == "string" && !collection:
		return fmt.Sprintf("quote it: %q", n.text)
	case want == "bool":
		return "write true or false, without quotes"
	case want == "int":
		return "write a whole number, without quotes"
	case want == "duration":
		return `give a number and a unit: "35s", "2m", "1h30m"`
	case strings.HasPrefix(want, "list") && !collection:
		return fmt.Sprintf("write a list: [%q]", n.text)
	case strings.HasPrefix(want, "list"):
		return "write a list: [a, b]"
	default:
		return "write the value itself"
	}
}

// value checks a node against the shape of its field.
func (k *checker) value(n *node, s *shape, enum []string, label string, sc scope) {
	switch {
	case s.kind == shapeSecret:
		k.secret(n, s, label, sc)
	case s.kind == shapeObject:
		if k.isMapping(n, label) {
			k.object(n, s, label, sc)
		}
	case s.kind == shapeMap:
		if k.isMapping(n, label) {
			for _, e := range n.entries {
				k.value(e.value, s.elem, enum, label+"."+e.key, sc)
			}
		}
	case n.isTemplate():
		k.template(n, s, label, sc)
	case s.kind == shapeList:
		if n.kind != nodeList {
			k.wrongType(n, label, s.noun())
			return
		}
		for i, item := range n.items {
			k.value(item, s.elem, enum, fmt.Sprintf("%s[%d]", label, i), sc)
		}
	default:
		k.scalar(n, s, enum, label)
	}
}

func (k *checker) scalar(n *node, s *shape, enum []string, label string) {
	fits := map[shapeKind]nodeKind{shapeString: nodeString, shapeBool: nodeBool, shapeInt: nodeInt, shapeDuration: nodeString}
	if n.kind != fits[s.kind] {
		k.wrongType(n, label, s.noun())
		return
	}
	switch {
	case s.kind == shapeDuration:
		if _, err := parseDuration(n.text); err != nil {
			k.wrongType(n, label, "duration")
		}
	case len(enum) > 0 && !slices.Contains(enum, n.text):
		k.error(n.pos, codeValue, "%s cannot be %q", label, n.text).Hint = didYouMean(n.text, enum)
	}
}

var durationRegexp = regexp.MustCompile(durationPattern)

func parseDuration(text string) (time.Duration, error) {
	if !durationRegexp.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	return time.ParseDuration(text)
}

func (k *checker) object(n *node, s *shape, label string, sc scope) {
	k.known(n, s.names(), label)
	for _, f := range s.fields {
		v := n.get(f.name)
		switch {
		case v != nil:
			k.value(v, f.shape, f.enum, f.name, sc)
		case f.required && !k.excused(f):
			k.missing(n, f, label)
		}
	}
}

// excused reports whether the plan has what makes a required field optional.
func (k *checker) excused(f *fieldShape) bool {
	return f.unless != "" && k.sections.get(f.unless) != nil
}

func (k *checker) missing(n *node, f *fieldShape, label string) {
	d := k.error(n.pos, codeMissing, "%s needs %s: %s", label, f.name, f.doc)
	if f.doc == "" {
		d.Message = fmt.Sprintf("%s needs %s", label, f.name)
	}
	if len(f.enum) > 0 {
		d.hint("add %s: %s (or another of %d values)", f.name, f.enum[0], len(f.enum))
	} else {
		d.hint("add %s", f.name)
	}
}

// template compiles a scalar with expressions and checks that what comes out
// fits the field.
func (k *checker) template(n *node, s *shape, label string, sc scope) {
	raw, open := splitTemplate(n.text)
	if open >= 0 {
		k.error(k.src.at(n, open), codeExprSyntax, "%s: the expression that begins here has no }", label).
			hint("close it, or write $${ for the text ${")
		return
	}
	t := &template{}
	ok := true
	for _, r := range raw {
		p := part{text: r.text}
		if r.isExpr {
			p.text = ""
			p.expr = k.exprs.compile(r.text, func(i int) Position { return k.src.at(n, r.offset+i) }, sc)
			ok = ok && p.expr != nil
		}
		t.parts = append(t.parts, p)
	}
	if !ok {
		return
	}
	if k.fits(n, t, s, label) {
		n.tmpl = t
	}
}

func (k *checker) fits(n *node, t *template, s *shape, label string) bool {
	if e := t.whole(); e != nil {
		if s.accepts(e.typ) {
			return true
		}
		d := k.error(e.pos, codeExprType, "%s: want %s, but %s is %s", label, s.noun(), e.source, celNoun(e.typ))
		if s.kind == shapeString && printable(e.typ) {
			d.hint("write ${string(%s)}", e.source)
		}
		return false
	}
	for _, p := range t.parts {
		if p.expr != nil && !printable(p.expr.typ) {
			k.error(p.expr.pos, codeExprType, "%s: a %s cannot stand inside text", label, celNoun(p.expr.typ)).
				hint("let the expression be the whole value")
			return false
		}
	}
	if s.kind != shapeString && s.kind != shapeDuration {
		k.error(n.pos, codeExprType, "%s: want %s, found text with an expression inside", label, s.noun()).
			hint("let the expression be the whole value: ${...}")
		return false
	}
	return true
}

// collectSteps reads the list of steps far enough to know their ids and types, which
// expressions refer to.
func (k *checker) collectSteps(root *node) {
	n := root.get("steps")
	switch {
	case n == nil:
		k.error(root.pos, codeNoSteps, "the plan has no steps").hint("add steps: and a list of them")
	case n.kind == nodeNull || n.kind == nodeList && len(n.items) == 0:
		k.error(n.pos, codeNoSteps, "the list of steps is empty").hint("add a step: - {id: NAME, type: TYPE}")
	case n.kind != nodeList:
		k.error(n.pos, codeType, "steps: want a list, found %s", n.found()).hint("begin each step with a dash: - id: NAME")
	default:
		seen := map[string]*stepNode{}
		for _, item := range n.items {
			if item.kind != nodeMap {
				k.error(item.pos, codeType, "a step: want a mapping, found %s", item.found()).hint("write - {id: NAME, type: TYPE}")
				continue
			}
			s := &stepNode{node: item, pos: item.pos, typePos: item.pos}
			k.stepID(s, seen)
			k.stepType(s)
			k.nodes = append(k.nodes, s)
		}
	}
}

func (k *checker) stepID(s *stepNode, seen map[string]*stepNode) {
	n := s.node.get("id")
	if n == nil {
		k.error(s.pos, codeMissing, "the step has no id").hint("add id: NAME")
		return
	}
	s.pos = n.pos
	if !k.plainString(n, "id") {
		return
	}
	if !idRegexp.MatchString(n.text) || slices.Contains(celReserved, n.text) {
		k.error(n.pos, codeStepID, "a step cannot be called %q", n.text).
			hint("begin with a lower case letter and use letters, digits and _: expressions name it steps.ID")
		return
	}
	if first, ok := seen[n.text]; ok {
		k.error(n.pos, codeStepTwice, "id %s is taken: line %d has it already", n.text, first.pos.Line).hint("give each step an id of its own")
		return
	}
	s.id = n.text
	seen[s.id] = s
}

func (k *checker) stepType(s *stepNode) {
	n := s.node.get("type")
	if n == nil {
		k.error(s.pos, codeMissing, "the step has no type").hint("add type: and one of %s", strings.Join(k.names, ", "))
		return
	}
	s.typePos = n.pos
	if !k.plainString(n, "type") {
		return
	}
	if s.typ = k.grammar.steps[n.text]; s.typ == nil {
		k.error(n.pos, codeStepType, "there is no step type %s", n.text).Hint = didYouMean(n.text, k.names)
	}
}

var stepFields = []string{"id", "type", "with", "expect"}

// step checks a step's inputs and expectations.
func (k *checker) step(i int) {
	s := k.nodes[i]
	before := k.errors
	k.known(s.node, stepFields, "a step")
	with := s.node.get("with")
	switch {
	case with != nil && k.isMapping(with, "with"):
		s.with = with
		if s.typ != nil {
			k.object(with, s.typ.inputs, s.typ.Name, scope{step: i})
		} else {
			k.loose(with, scope{step: i})
		}
	case with == nil && s.typ != nil && s.typ.inputs.needs():
		for _, f := range s.typ.inputs.fields {
			if f.required {
				k.error(s.typePos, codeMissing, "%s needs %s: %s", s.typ.Name, f.name, f.doc).hint("add with: {%s: ...}", f.name)
			}
		}
	}
	s.sound = k.errors == before && s.typ != nil
	if expect := s.node.get("expect"); expect != nil {
		k.expectations(s, expect, scope{step: i, expect: true})
	}
}

// loose checks the expressions in inputs whose fields are not known.
func (k *checker) loose(n *node, sc scope) {
	for _, e := range n.entries {
		k.loose(e.value, sc)
	}
	for _, item := range n.items {
		k.loose(item, sc)
	}
	if !n.isTemplate() {
		return
	}
	raw, _ := splitTemplate(n.text)
	for _, r := range raw {
		if r.isExpr {
			k.exprs.compile(r.text, func(i int) Position { return k.src.at(n, r.offset+i) }, sc)
		}
	}
}

func (k *checker) expectations(s *stepNode, n *node, sc scope) {
	if n.kind != nodeList {
		k.wrongType(n, "expect", "list of string")
		return
	}
	for i, item := range n.items {
		label := "expect[" + strconv.Itoa(i) + "]"
		if item.kind != nodeString {
			k.wrongType(item, label, "string")
			continue
		}
		if raw, open := splitTemplate(item.text); open >= 0 || len(raw) == 1 && raw[0].isExpr {
			k.error(item.pos, codeExprWrapped, "%s is an expression already", label).hint("write it without ${ and }")
			continue
		}
		e := k.exprs.compile(item.text, func(i int) Position { return k.src.at(item, i) }, sc)
		if e == nil {
			continue
		}
		if celNoun(e.typ) != "bool" && celNoun(e.typ) != "any" {
			k.error(e.pos, codeExprType, "%s: want a condition, found %s", label, celNoun(e.typ)).hint("compare it: %s == ...", item.text)
			continue
		}
		s.expect = append(s.expect, &Expectation{Source: item.text, Position: e.pos, expr: e})
	}
}
