package plan

import "errors"

// Position is a place in the plan file. Lines and columns count from 1, columns
// in characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Step is one step of a plan.
type Step struct {
	ID           string
	Type         StepType
	Position     Position // of the step's id
	Expectations []*Expectation
}

// Bind evaluates the step's inputs over the outputs of earlier steps and decodes
// them, with defaults applied, into a value of Type.Inputs. outputs holds a value
// (or a pointer to one) of Type.Outputs by step id: what the step returned, or in
// a dry run what it predicts. The error is a *Diagnostic.
func (s *Step) Bind(outputs map[string]any) (inputs any, err error) {
	return nil, errors.New("not written yet")
}

// StaticInputs returns the step's inputs when they depend on no step's outputs.
func (s *Step) StaticInputs() (inputs any, ok bool) { return nil, false }

// Expectation is one condition of a step's expect section.
type Expectation struct {
	Source   string // the expression as written
	Position Position
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
	return Outcome{}, errors.New("not written yet")
}

// String names the operands: "outputs.removed is 0, steps.wal.outputs.logs is 16".
func (o Outcome) String() string { return "" }
