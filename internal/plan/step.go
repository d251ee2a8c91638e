package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Step is one step of a plan.
type Step struct {
	ID           string
	Type         StepType
	Position     Position // of the step's id
	Expectations []*Expectation

	file   string
	shape  *shape
	with   *node // nil: none given
	params map[string]any
	refs   []reference // what the inputs name
}

// Bind evaluates the step's inputs over the outputs of earlier steps and decodes
// them, with defaults applied, into a value of Type.Inputs. outputs holds a value
// (or a pointer to one) of Type.Outputs by step id: what the step returned, or in
// a dry run what it predicts. The error is a *Diagnostic.
func (s *Step) Bind(outputs map[string]any) (inputs any, err error) {
	d := &decoder{file: s.file, vars: variables(s.params, outputs)}
	for _, r := range s.refs {
		if id := r.step(); id != "" && outputs[id] == nil {
			return nil, d.fail(s.Position, codeExprFailed, "step %s has no outputs yet", id)
		}
	}
	v, problem := d.object(s.with, s.shape)
	if problem != nil {
		return nil, problem
	}
	return v.Interface(), nil
}

// StaticInputs returns the step's inputs when they depend on no step's outputs.
func (s *Step) StaticInputs() (inputs any, ok bool) {
	if slices.ContainsFunc(s.refs, func(r reference) bool { return r.root == "steps" }) {
		return nil, false
	}
	inputs, err := s.Bind(nil)
	return inputs, err == nil
}

// Uses lists the ids of the steps whose outputs the inputs name, in the order in
// which they are named.
func (s *Step) Uses() []string {
	var ids []string
	for _, r := range s.refs {
		if id := r.step(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// variables is what expressions read.
func variables(params, outputs map[string]any) map[string]any {
	steps := map[string]any{}
	for id, out := range outputs {
		steps[id] = map[string]any{"outputs": outputValue(reflect.ValueOf(out))}
	}
	return map[string]any{"params": params, "steps": steps}
}

// Expectation is one condition of a step's expect section.
type Expectation struct {
	Source   string // the expression as written
	Position Position

	file   string
	expr   *expression
	params map[string]any
}

// Outcome says how an expectation was met.
type Outcome struct {
	OK       bool
	Operands []Operand // what the expression looked at; set whatever OK is
}

// Operand is one value that an expression looked at.
type Operand struct {
	Text  string `json:"text"` // as written: "outputs.removed"
	Value any    `json:"value"`
}

// Check evaluates the condition over the step's own outputs and those of earlier
// steps, which are given as for Bind. The error is a *Diagnostic and means that
// the condition could not be evaluated, which is not the same as not met.
func (e *Expectation) Check(own any, outputs map[string]any) (Outcome, error) {
	vars := variables(e.params, outputs)
	vars["outputs"] = outputValue(reflect.ValueOf(own))
	var o Outcome
	for _, r := range e.expr.refs {
		o.Operands = append(o.Operands, Operand{r.String(), lookup(vars, r)})
	}
	d := &decoder{file: e.file}
	v, err := e.expr.eval(vars)
	if err != nil {
		return o, d.fail(e.Position, codeExprFailed, "%s: %v", e.Source, err)
	}
	ok, isBool := v.(bool)
	if !isBool {
		return o, d.fail(e.Position, codeExprType, "%s: want a condition, found %s", e.Source, goNoun(v))
	}
	o.OK = ok
	return o, nil
}

// lookup reads what a reference names, or nil.
func lookup(vars map[string]any, r reference) any {
	v := vars[r.root]
	for _, name := range r.path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// String names the operands: "outputs.removed is 0, steps.wal.outputs.logs is 16".
func (o Outcome) String() string {
	var parts []string
	for _, op := range o.Operands {
		parts = append(parts, op.Text+" is "+show(op.Value))
	}
	return strings.Join(parts, ", ")
}

// shownItems bounds how many items of a list are shown.
const shownItems = 5

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "absent"
	case string:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return v.Format(time.RFC3339)
	case []string:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return show(items)
	case []any:
		var items []string
		for _, item := range v[:min(len(v), shownItems)] {
			items = append(items, show(item))
		}
		if more := len(v) - len(items); more > 0 {
			items = append(items, fmt.Sprintf("and %d more", more))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		return fmt.Sprintf("a mapping of %d", len(v))
	default:
		return fmt.Sprint(v)
	}
}
