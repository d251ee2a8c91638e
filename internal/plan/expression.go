package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Bounds of expressions. What plans need is a line of text and a few comparisons.
const (
	maxExpressionLength = 2000   // characters
	maxExpressionDepth  = 50     // nesting
	maxExpressionNodes  = 2000   // after macros
	maxExpressionCost   = 200000 // CEL's cost units, about a millisecond
	maxExpressions      = 500    // of a plan
)

// expression is a compiled piece of CEL.
type expression struct {
	source string
	pos    Position // of its first character
	typ    *cel.Type
	refs   []reference

	program func() (cel.Program, error) // made at the first evaluation
}

// reference is a value that an expression names: params.x, outputs.y or
// steps.id.outputs.z, as far as the names reach.
type reference struct {
	root string
	path []string
}

func (r reference) String() string { return strings.Join(append([]string{r.root}, r.path...), ".") }

// step is the id of the step whose outputs are named, or "".
func (r reference) step() string {
	if r.root == "steps" && len(r.path) > 0 {
		return r.path[0]
	}
	return ""
}

// scope is where an expression stands, which decides what it may name.
type scope struct {
	step   int  // index of the step; -1: the instance section
	expect bool // outputs is the step's own
}

// expressions compiles what a plan says in CEL.
type expressions struct {
	*collector
	params map[string]*param
	names  []string // of params, in the order of the file
	steps  []*stepNode

	count    int
	provider *typeProvider
	base     *cel.Env
	expect   map[reflect.Type]*cel.Env
}

// env returns the environment of a scope, made at first use: a CEL environment
// costs a millisecond.
func (x *expressions) env(sc scope) (*cel.Env, error) {
	if x.base == nil {
		if err := x.makeBase(); err != nil {
			return nil, err
		}
	}
	if !sc.expect {
		return x.base, nil
	}
	outputs := cel.DynType
	var key reflect.Type
	if t := x.steps[sc.step].typ; t != nil {
		key = t.Outputs
		outputs = x.provider.celTypeOf(key)
	}
	if env, ok := x.expect[key]; ok {
		return env, nil
	}
	env, err := x.base.Extend(cel.Variable("outputs", outputs))
	if err == nil {
		x.expect[key] = env
	}
	return env, err
}

func (x *expressions) makeBase() error {
	registry, err := types.NewRegistry()
	if err != nil {
		return err
	}
	x.provider = newTypeProvider(registry)
	x.expect = map[reflect.Type]*cel.Env{}
	params, fields := x.provider.declare("the params")
	for _, name := range x.names {
		fields.add(name, x.params[name].celType())
	}
	steps, fields := x.provider.declare("the steps")
	for _, s := range x.steps {
		if s.id == "" {
			continue
		}
		outputs := cel.DynType
		if s.typ != nil {
			outputs = x.provider.celTypeOf(s.typ.Outputs)
		}
		step, stepFields := x.provider.declare("the step " + s.id)
		stepFields.add("outputs", outputs)
		fields.add(s.id, step)
	}
	x.base, err = cel.NewEnv(
		cel.CustomTypeAdapter(registry),
		cel.CustomTypeProvider(x.provider),
		cel.Variable("params", params),
		cel.Variable("steps", steps),
		cel.CrossTypeNumericComparisons(true), // outputs.fraction >= 1
		cel.ParserExpressionSizeLimit(maxExpressionLength),
		cel.ParserRecursionLimit(maxExpressionDepth),
		cel.ExpressionNodeLimit(maxExpressionNodes),
	)
	return err
}

// compile parses and checks an expression; at gives the place of each of its
// characters. It reports what is wrong and then returns nil.
func (x *expressions) compile(source string, at func(int) Position, sc scope) *expression {
	if x.count++; x.count > maxExpressions {
		if x.count == maxExpressions+1 {
			x.error(at(0), codeExprLimit, "a plan may hold %d expressions, this is one more", maxExpressions)
		}
		return nil
	}
	if strings.TrimSpace(source) == "" {
		x.error(at(0), codeExprSyntax, "the expression is empty").hint("name a value: params.NAME")
		return nil
	}
	if n := len([]rune(source)); n > maxExpressionLength {
		x.error(at(0), codeExprLimit, "the expression has %d characters, %d are allowed", n, maxExpressionLength)
		return nil
	}
	env, err := x.env(sc)
	if err != nil {
		x.error(at(0), codeExprSyntax, "cannot be compiled: %v", err)
		return nil
	}
	ast, issues := env.Parse(source)
	if issues.Err() != nil {
		x.parseIssue(issues.Errors()[0], source, at)
		return nil
	}
	names := &nameCheck{expressions: x, scope: sc, source: []rune(source), at: at, ast: ast.NativeRep()}
	if !names.check() {
		return nil
	}
	checked, issues := env.Check(ast)
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			x.typeIssue(issue, source, at)
		}
		return nil
	}
	return &expression{
		source: source, pos: at(0), typ: checked.OutputType(), refs: names.refs,
		program: sync.OnceValues(func() (cel.Program, error) {
			return env.Program(checked, cel.CostLimit(maxExpressionCost))
		}),
	}
}

// offset is the number of the character at a CEL location.
func offset(source string, line, column int) int {
	n := 0
	for text := range strings.SplitSeq(source, "\n") {
		if line--; line <= 0 {
			break
		}
		n += len([]rune(text)) + 1
	}
	return max(n+column, 0)
}

func (x *expressions) parseIssue(issue *cel.Error, source string, at func(int) Position) {
	pos := at(offset(source, issue.Location.Line(), issue.Location.Column()))
	message := strings.TrimPrefix(issue.Message, "Syntax error: ")
	if strings.Contains(message, "recursion limit") || strings.Contains(message, "nesting") ||
		strings.Contains(message, "node count") || strings.Contains(message, "node limit") {
		x.error(pos, codeExprLimit, "the expression is too deep or too long").hint("split it into several")
		return
	}
	message, _, _ = strings.Cut(message, " expecting ")
	if m := unexpected.FindStringSubmatch(message); m != nil {
		message = "unexpected " + m[1]
	}
	if strings.Contains(message, "<EOF>") {
		message = "it ends too early"
	}
	d := x.error(pos, codeExprSyntax, "not a valid expression: %s", message)
	d.hint("expressions are CEL: params.size > 3 && params.name != 'x'")
	if strings.Contains(message, "'= ") {
		d.hint("write == to compare")
	}
}

var (
	unexpected    = regexp.MustCompile(`^(?:mismatched input|extraneous input|no viable alternative at input|token recognition error at:) (.*)$`)
	noOverload    = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '(.*)'$`)
	undeclared    = regexp.MustCompile(`^undeclared reference to '([^']+)'`)
	undefined     = regexp.MustCompile(`^undefined field '(.+)'$`)
	wantFound     = regexp.MustCompile(`^expected type '(.+)' but found '(.+)'$`)
	noFields      = regexp.MustCompile(`^type '(.+)' does not support field selection$`)
	hiddenMapping = regexp.MustCompile(`mapping \d+|the params|the steps|the step \w+`)
	operatorName  = regexp.MustCompile(`^_(.+)_$|^(.)_$`)
)

// typeIssue puts CEL's type errors into an operator's words.
func (x *expressions) typeIssue(issue *cel.Error, source string, at func(int) Position) {
	index := offset(source, issue.Location.Line(), issue.Location.Column())
	if runes := []rune(source); index < len(runes) && runes[index] == '.' {
		index++ // CEL points at the dot before the name
	}
	pos := at(index)
	message := hiddenMapping.ReplaceAllString(issue.Message, "mapping")
	if m := noOverload.FindStringSubmatch(message); m != nil {
		x.overloadIssue(pos, m[1], strings.Trim(m[2], "()"))
		return
	}
	if m := undeclared.FindStringSubmatch(message); m != nil {
		x.error(at(max(index-len(m[1]), 0)), codeExprName, "there is no function %s", m[1]). // CEL points behind it
													hint("use what CEL has: size, contains, startsWith, endsWith, matches, has, all, exists, string, int")
		return
	}
	if m := undefined.FindStringSubmatch(message); m != nil {
		x.error(pos, codeExprOutput, "there is no field %s here", m[1]).hint("look at `runbook steps` for the outputs")
		return
	}
	if m := noFields.FindStringSubmatch(message); m != nil {
		x.error(pos, codeExprType, "a value of type %s has no fields", m[1]).hint("remove what follows its name")
		return
	}
	if m := wantFound.FindStringSubmatch(message); m != nil {
		x.error(pos, codeExprType, "want %s, found %s", m[1], m[2]).hint("compare it with something, or name another value")
		return
	}
	x.error(pos, codeExprType, "%s", message)
}

func (x *expressions) overloadIssue(pos Position, name, operands string) {
	switch {
	case name == "_?_:_":
		x.error(pos, codeExprType, "the two results of ? : must have one type, and its condition must be a bool: found %s", operands)
	case name == "_[_]":
		x.error(pos, codeExprType, "cannot index %s", strings.Replace(operands, ", ", " with ", 1)).hint("write .NAME for a field")
	case operatorName.MatchString(name):
		m := operatorName.FindStringSubmatch(name)
		left, right, binary := strings.Cut(operands, ", ")
		d := x.error(pos, codeExprType, "cannot apply %s to %s", m[1]+m[2], left)
		if binary {
			d.Message = fmt.Sprintf("cannot apply %s to %s and %s", m[1], left, right)
			d.hint("make both sides one type: string(...), int(...)")
		}
	default:
		x.error(pos, codeExprType, "%s does not take (%s)", name, strings.Replace(operands, ").(", ", ", 1))
	}
}

// eval evaluates the expression over params, steps and outputs.
func (e *expression) eval(vars map[string]any) (any, error) {
	program, err := e.program()
	if err != nil {
		return nil, err
	}
	v, _, err := program.Eval(vars)
	if err != nil {
		return nil, plainEval(err)
	}
	return native(v)
}

func plainEval(err error) error {
	message := err.Error()
	switch {
	case strings.Contains(message, "cost limit"):
		return errors.New("it takes too long to evaluate")
	case strings.Contains(message, "no such key"):
		_, key, _ := strings.Cut(message, "no such key: ")
		return fmt.Errorf("there is no value %s (has(...) tells whether there is)", key)
	default:
		return err
	}
}

// native turns a value of CEL into string, bool, int64, float64, time.Duration,
// time.Time, []any, map[string]any or nil.
func native(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.String, types.Bool, types.Int, types.Double, types.Duration, types.Timestamp:
		return v.Value(), nil
	case types.Uint:
		if uint64(v) > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too big", uint64(v))
		}
		return int64(v), nil
	case types.Null:
		return nil, nil
	case traits.Lister:
		items := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, err := native(it.Next())
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	case traits.Mapper:
		m := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			value, err := native(v.Get(key))
			if err != nil {
				return nil, err
			}
			m[fmt.Sprint(key.Value())] = value
		}
		return m, nil
	default:
		return nil, fmt.Errorf("a value of type %s cannot be used in a plan", v.Type().TypeName())
	}
}

// text renders a value that stands inside text.
func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64, float64, time.Duration:
		return fmt.Sprint(v), nil
	default:
		return "", fmt.Errorf("a list or a mapping cannot stand inside text")
	}
}

// eval evaluates the template: one expression keeps its type, anything else is text.
func (t *template) eval(vars map[string]any) (any, error) {
	if e := t.whole(); e != nil {
		return e.eval(vars)
	}
	var b strings.Builder
	for _, p := range t.parts {
		s := p.text
		if p.expr != nil {
			v, err := p.expr.eval(vars)
			if err != nil {
				return nil, err
			}
			if s, err = text(v); err != nil {
				return nil, err
			}
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
