package plan

import "reflect"

// Field is one field of an input, output or instance struct, as its tags describe it.
type Field struct {
	Name     string   // as written in a plan
	Type     string   // "string", "bool", "int", "duration", "secret", "list of string", "object", ...
	Doc      string   // one line for people
	Default  string   // as written in the tag
	Enum     []string // the values allowed
	Required bool
	Fields   []Field // of an object, or of the elements of a list of objects
}

// Fields describes the fields of a struct type in the order of their declaration.
func Fields(t reflect.Type) []Field { return nil }
