// Package plan reads a plan file into typed values: YAML with positions, the
// JSON schema, expressions, semantic checks. It makes no connection and imports
// no other room of the program; what it must know of step types and of the
// instance section it is told as a Language.
package plan

import "reflect"

// Fact is a statement about the instance that can be verified live.
type Fact string

// The facts that steps require and provide.
const (
	MilvusStopped  Fact = "milvusStopped"
	WALEmpty       Fact = "walEmpty"
	PositionsReset Fact = "positionsReset"
	MilvusRunning  Fact = "milvusRunning"
)

// ends lists the facts that no longer hold once f does: a running Milvus is not
// stopped, writes its WAL and moves its positions.
func (f Fact) ends() []Fact {
	switch f {
	case MilvusRunning:
		return []Fact{MilvusStopped, WALEmpty, PositionsReset}
	case MilvusStopped:
		return []Fact{MilvusRunning}
	default:
		return nil
	}
}

// Requirement is a fact that must hold before a step may run.
type Requirement struct {
	Fact Fact
	When string                // in words, when it is not always required: "targetWal is woodpecker"
	If   func(inputs any) bool // nil: always; inputs is a value of StepType.Inputs
}

// StepType is what the language knows of a step type.
type StepType struct {
	Name     string // as written in a plan
	Summary  string // one line, lower case, no full stop
	Requires []Requirement
	Provides []Fact
	Inputs   reflect.Type // struct; see the field tags below
	Outputs  reflect.Type // struct; its JSON names are what expressions may use
}

// Language is everything a plan may say.
//
// Inputs and the instance section are Go structs. Their field tags are the one
// place where a field is described, for the schema, the decoder and the help text:
//
//	json:"name"        the field's name in the plan
//	doc:"..."          one line for people
//	default:"..."      the value when the plan gives none
//	enum:"a,b,c"       the values allowed
//	required:"true"    the plan must give it
//	required:"unless x"  in the instance section: the plan must give it unless it
//	                   gives the instance section's field x
//
// Field types: string, bool, int, int64, time.Duration (written "35s"),
// secret.Value, slices and maps of these, nested structs and pointers to structs
// (a nil pointer means the section is absent).
//
// A struct with the method SetGiven(fields []string) is told which fields the plan
// gave and did not leave to their defaults, those of nested structs as "a.b".
type Language struct {
	Steps    []StepType // in the order in which they are listed to people
	Instance reflect.Type
}
