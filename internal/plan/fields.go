package plan

import "reflect"

// Field is one field of an input, output or instance struct, as its tags describe it.
type Field struct {
	Name     string   `json:"name"` // as written in a plan
	Type     string   `json:"type"` // "string", "bool", "int", "duration", "secret", "list of string", "mapping", ...
	Doc      string   `json:"doc,omitempty"`
	Default  string   `json:"default,omitempty"` // as written in the tag
	Enum     []string `json:"enum,omitempty"`    // the values allowed
	Required bool     `json:"required,omitempty"`
	Fields   []Field  `json:"fields,omitempty"` // of a mapping, or of the items of a list of mappings
}

// Fields describes the fields of an input, output or instance struct in the
// order of their declaration. Fields that expressions cannot name are left out.
func Fields(t reflect.Type) []Field {
	if s, err := shapeOf(t); err == nil {
		return describe(s)
	}
	return outputFields(t)
}

func describe(s *shape) []Field {
	var out []Field
	for _, f := range s.fields {
		d := Field{Name: f.name, Type: f.noun(), Doc: f.doc, Default: f.deflt, Enum: f.enum, Required: f.required && f.unless == ""}
		inner := f.shape
		for inner.kind == shapeList || inner.kind == shapeMap {
			inner = inner.elem
		}
		if f.kind == shapeSecret {
			d.Type = "secret"
		}
		d.Fields = describe(inner)
		out = append(out, d)
	}
	return out
}
