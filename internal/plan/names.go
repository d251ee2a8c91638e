package plan

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"cel.dev/cel-go/common/ast"
)

// nameCheck looks at every name in an expression before CEL's own checker does:
// it knows what a name was meant to be, and where its first letter is.
type nameCheck struct {
	*expressions
	scope  scope
	source []rune
	at     func(int) Position
	ast    *ast.AST
	refs   []reference
	failed bool
}

// celTypeNames are identifiers that CEL itself defines.
var celTypeNames = []string{"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint", "dyn"}

func (c *nameCheck) check() bool {
	c.walk(c.ast.Expr(), nil)
	return !c.failed
}

func (c *nameCheck) fail(offset int, code, format string, args ...any) *Diagnostic {
	c.failed = true
	return c.error(c.at(offset), code, format, args...)
}

// walk visits e; bound are the loop variables around it.
func (c *nameCheck) walk(e ast.Expr, bound []string) {
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		c.chain(e, bound)
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			c.walk(call.Target(), bound)
		}
		for _, arg := range call.Args() {
			c.walk(arg, bound)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			c.walk(item, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.walk(entry.AsMapEntry().Key(), bound)
			c.walk(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		c.fail(c.offset(e), codeExprSyntax, "expressions cannot make values of type %s", e.AsStruct().TypeName())
	case ast.ComprehensionKind:
		c.loop(e.AsComprehension(), bound)
	}
}

func (c *nameCheck) loop(l ast.ComprehensionExpr, bound []string) {
	c.walk(l.IterRange(), bound)
	c.walk(l.AccuInit(), bound)
	inner := append(slices.Clone(bound), l.IterVar(), l.AccuVar())
	if l.HasIterVar2() {
		inner = append(inner, l.IterVar2())
	}
	for _, v := range []string{l.IterVar(), l.IterVar2()} {
		if slices.Contains([]string{"params", "steps", "outputs"}, v) {
			c.fail(c.offset(l.IterRange()), codeExprName, "%s cannot name a loop variable: it is taken", v).hint("name it x")
			return
		}
	}
	c.walk(l.LoopCondition(), inner)
	c.walk(l.LoopStep(), inner)
	c.walk(l.Result(), inner)
}

// offset is the number of e's first character, or of its operator.
func (c *nameCheck) offset(e ast.Expr) int {
	r, _ := c.ast.SourceInfo().GetOffsetRange(e.ID())
	return int(r.Start)
}

// chain takes a name with its fields, a.b.c, apart. A field of something that is
// not a name, f(x).y, is left to CEL.
func (c *nameCheck) chain(e ast.Expr, bound []string) {
	var selects []ast.Expr
	for e.Kind() == ast.SelectKind {
		selects = append([]ast.Expr{e}, selects...)
		e = e.AsSelect().Operand()
	}
	if e.Kind() != ast.IdentKind {
		c.walk(e, bound)
		return
	}
	root := strings.TrimPrefix(e.AsIdent(), ".")
	if slices.Contains(bound, root) || strings.HasPrefix(root, "@") {
		return
	}
	n := &nameChain{nameCheck: c, root: root, offsets: []int{c.offset(e)}}
	for _, s := range selects {
		name := s.AsSelect().FieldName()
		n.path = append(n.path, name)
		n.offsets = append(n.offsets, c.fieldOffset(c.offset(s), name, n.offsets[len(n.offsets)-1]))
	}
	n.resolve()
}

// fieldOffset finds the name after its dot, from which CEL counts; after a macro
// it counts from the macro, and the search goes on from the name before.
func (c *nameCheck) fieldOffset(dot int, name string, before int) int {
	for i := max(dot, before); i < len(c.source); i++ {
		if c.source[i] != '.' {
			continue
		}
		j := i + 1
		for j < len(c.source) && (c.source[j] == ' ' || c.source[j] == '\n' || c.source[j] == '\t') {
			j++
		}
		if end := j + len(name); hasPrefix(c.source[j:], name) && (end == len(c.source) || !isNameRune(c.source[end])) {
			return j
		}
	}
	return before
}

func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// nameChain is one dotted name; offsets has one for the root and one for each
// element of path.
type nameChain struct {
	*nameCheck
	root    string
	path    []string
	offsets []int
}

func (n *nameChain) resolve() {
	switch n.root {
	case "params":
		n.param()
	case "steps":
		n.step()
	case "outputs":
		n.own()
	case "env":
		d := n.fail(n.offsets[0], codeExprEnv, "expressions cannot read the environment")
		d.hint("for a secret write valueFrom: {env: NAME}; for anything else declare a param and give it with --set")
	default:
		if !slices.Contains(celTypeNames, n.root) {
			n.unknown()
		}
	}
}

func (n *nameChain) unknown() {
	d := n.fail(n.offsets[0], codeExprName, "there is no %s: expressions know params, steps and, in expect, outputs", n.root)
	param := nearest(n.root, n.names)
	step := nearest(n.root, n.stepIDs(n.steps))
	switch root := nearest(n.root, []string{"params", "steps", "outputs"}); {
	case param != "":
		d.hint("write params.%s", param)
	case step != "":
		d.hint("write steps.%s.outputs", step)
	case root != "":
		d.hint("write %s", root)
	case n.root == strings.ToUpper(n.root):
		d.hint("for a secret write valueFrom: {env: %s}: expressions cannot read the environment", n.root)
	default:
		d.hint("declare it in params and write params.%s, or quote it if it is text: '%s'", n.root, n.root)
	}
}

func (n *nameChain) param() {
	if len(n.path) == 0 {
		n.fail(n.offsets[0], codeExprParam, "params alone is not a value").hint("name one: params.NAME")
		return
	}
	p, ok := n.params[n.path[0]]
	if !ok {
		d := n.fail(n.offsets[1], codeExprParam, "there is no param %s", n.path[0])
		if guess := nearest(n.path[0], n.names); guess != "" {
			d.hint("write params.%s", guess)
		} else {
			d.hint("declare it: params: {%s: {type: string}}", n.path[0])
		}
		return
	}
	p.used = true
	n.refer(1)
}

func (n *nameChain) own() {
	if !n.scope.expect {
		n.fail(n.offsets[0], codeExprName, "outputs is known in expect only").
			hint("write steps.ID.outputs.NAME for the output of an earlier step")
		return
	}
	if t := n.steps[n.scope.step].typ; t != nil {
		n.fields(t.Outputs, 0)
		return
	}
	n.refer(len(n.path))
}

func (n *nameChain) step() {
	if n.scope.step < 0 {
		n.fail(n.offsets[0], codeExprPlace, "the instance section cannot depend on a step: it is read before any step runs").
			hint("use a param")
		return
	}
	earlier := n.steps[:n.scope.step]
	if len(n.path) == 0 {
		n.fail(n.offsets[0], codeExprStep, "steps alone is not a value").hint("name an output: steps.ID.outputs.NAME")
		return
	}
	id := n.path[0]
	target := slices.IndexFunc(n.steps, func(s *stepNode) bool { return s.id == id })
	switch {
	case target < 0:
		d := n.fail(n.offsets[1], codeExprStep, "there is no step %s", id)
		d.Hint = didYouMean(id, n.stepIDs(earlier))
		return
	case target == n.scope.step && n.scope.expect:
		n.fail(n.offsets[1], codeExprOwn, "%s is this step", id).hint("write outputs.NAME")
		return
	case target == n.scope.step:
		n.fail(n.offsets[1], codeExprOwn, "%s is this step: it has no outputs before it has run", id).
			hint("name an earlier step")
		return
	case target > n.scope.step:
		n.fail(n.offsets[1], codeExprLater, "step %s comes later (line %d): it has no outputs yet", id, n.steps[target].pos.Line).
			hint("move it before this step")
		return
	}
	if len(n.path) == 1 || n.path[1] != "outputs" {
		offset := n.offsets[min(2, len(n.path))]
		n.fail(offset, codeExprOutput, "of a step only its outputs are known").hint("write steps.%s.outputs.NAME", id)
		return
	}
	if t := n.steps[target].typ; t != nil {
		n.fields(t.Outputs, 2)
		return
	}
	n.refer(len(n.path))
}

// fields checks the names in path from index from on, which are fields of t.
func (n *nameChain) fields(t reflect.Type, from int) {
	for i := from; i < len(n.path); i++ {
		t = deref(t)
		if t.Kind() != reflect.Struct || t == timeType {
			n.refer(i) // a map, or something without fields: CEL decides
			return
		}
		next, ok := outputNamed(t, n.path[i])
		if !ok {
			n.unknownField(t, i)
			return
		}
		t = next
	}
	n.refer(len(n.path))
}

func (n *nameChain) unknownField(t reflect.Type, i int) {
	of := strings.Join(append([]string{n.root}, n.path[:i]...), ".")
	d := n.fail(n.offsets[i+1], codeExprOutput, "%s has no %s", of, n.path[i])
	d.Hint = didYouMean(n.path[i], outputNames(t))
}

// refer records the first fields of the path as a value that the expression reads.
func (n *nameChain) refer(fields int) {
	r := reference{root: n.root, path: n.path[:fields]}
	if !slices.ContainsFunc(n.refs, func(o reference) bool { return o.String() == r.String() }) {
		n.refs = append(n.refs, r)
	}
}

func (x *expressions) stepIDs(steps []*stepNode) []string {
	var ids []string
	for _, s := range steps {
		if s.id != "" {
			ids = append(ids, s.id)
		}
	}
	return ids
}
