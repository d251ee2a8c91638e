package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What `apiVersion` and `kind` of a plan must be.
const (
	apiVersion = "runbook/v1"
	planKind   = "Plan"
)

// Patterns, the same for the schema and for the checks.
const (
	namePattern       = `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	idPattern         = `^[a-z][a-zA-Z0-9_]*$`
	durationPattern   = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	expressionPattern = `\$\{`
)

// paramTypes are what a parameter may be.
var paramTypes = []string{"string", "int", "bool", "list"}

// object is a piece of JSON schema that keeps the order of its keywords.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := marshalJSON(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshalJSON is json.Marshal without the escapes that are for web pages.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Schema renders the JSON schema (draft 2020-12) of plans in this language,
// indented and with a final newline.
func Schema(lang Language) ([]byte, error) {
	g, err := newGrammar(lang)
	if err != nil {
		return nil, err
	}
	compact, err := marshalJSON(g.schema())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// grammar is a Language with its Go types read.
type grammar struct {
	lang     Language
	steps    map[string]*stepShape
	names    []string // of the step types
	instance *shape   // nil: plans of this language have no instance section
}

type stepShape struct {
	StepType
	inputs *shape
}

func newGrammar(lang Language) (*grammar, error) {
	g := &grammar{lang: lang, steps: map[string]*stepShape{}}
	for _, t := range lang.Steps {
		if t.Inputs == nil || t.Outputs == nil {
			return nil, fmt.Errorf("step type %s: inputs and outputs must be struct types", t.Name)
		}
		s, err := shapeOf(t.Inputs)
		if err != nil {
			return nil, fmt.Errorf("step type %s: %w", t.Name, err)
		}
		g.steps[t.Name] = &stepShape{StepType: t, inputs: s}
		g.names = append(g.names, t.Name)
	}
	if lang.Instance != nil {
		s, err := shapeOf(lang.Instance)
		if err != nil {
			return nil, fmt.Errorf("instance section: %w", err)
		}
		g.instance = s
	}
	return g, nil
}

func (g *grammar) schema() object {
	properties := object{
		{"apiVersion", object{{"description", "the version of this language"}, {"const", apiVersion}}},
		{"kind", object{{"description", "what this document is"}, {"const", planKind}}},
		{"metadata", metadataSchema()},
		{"params", paramsSchema()},
	}
	required := []string{"apiVersion", "kind", "metadata", "steps"}
	if g.instance != nil {
		instance := append(g.instance.schema(), g.instance.alternatives()...)
		properties = append(properties, member{"instance", append(object{{"description", "the Milvus that the plan is about"}}, instance...)})
		if g.instance.needs() {
			required = []string{"apiVersion", "kind", "metadata", "instance", "steps"}
		}
	}
	properties = append(properties, member{"steps", object{
		{"description", "what is done, in order"},
		{"type", "array"}, {"minItems", 1}, {"items", object{{"$ref", "#/$defs/step"}}},
	}})
	return object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:runbook:plan:v1"},
		{"title", "runbook plan"},
		{"type", "object"},
		{"properties", properties},
		{"required", required},
		{"additionalProperties", false},
		{"$defs", g.defs()},
	}
}

func metadataSchema() object {
	return object{
		{"description", "what the plan is called and what it is for"},
		{"type", "object"},
		{"properties", object{
			{"name", object{{"description", "lower case letters, digits and dashes"}, {"type", "string"}, {"pattern", namePattern}, {"maxLength", 63}}},
			{"description", object{{"description", "what the plan does, in a sentence"}, {"type", "string"}}},
		}},
		{"required", []string{"name"}},
		{"additionalProperties", false},
	}
}

func paramsSchema() object {
	return object{
		{"description", "values that --set name=value and --values FILE can override; expressions name them params.NAME"},
		{"type", "object"},
		{"propertyNames", object{{"pattern", idPattern}}},
		{"additionalProperties", object{
			{"type", "object"},
			{"properties", object{
				{"type", object{{"description", "list: a list of strings"}, {"enum", paramTypes}}},
				{"default", object{
					{"description", "the value when the command line gives none; without it the command line must give one"},
					{"type", []string{"string", "integer", "boolean", "array"}},
					{"items", object{{"type", "string"}}},
				}},
				{"enum", object{
					{"description", "the values allowed"},
					{"type", "array"}, {"minItems", 1},
					{"items", object{{"type", []string{"string", "integer", "boolean"}}}},
				}},
				{"description", object{{"description", "one line for the person who sets it"}, {"type", "string"}}},
				{"required", object{
					{"description", "false: without a value it is empty, 0 or false; default: true when there is no default"},
					{"type", "boolean"},
				}},
			}},
			{"required", []string{"type"}},
			{"additionalProperties", false},
		}},
	}
}

func (g *grammar) defs() object {
	var types, conditions []any
	inputs := object{}
	for _, t := range g.lang.Steps {
		types = append(types, object{{"const", t.Name}, {"description", t.Summary}})
		s := g.steps[t.Name].inputs
		then := object{{"properties", object{{"with", object{{"$ref", "#/$defs/with." + t.Name}}}}}}
		if s.needs() {
			then = append(then, member{"required", []string{"with"}})
		}
		conditions = append(conditions, object{
			{"if", object{{"properties", object{{"type", object{{"const", t.Name}}}}}, {"required", []string{"type"}}}},
			{"then", then},
		})
		inputs = append(inputs, member{"with." + t.Name, append(object{{"description", "inputs of " + t.Name + ": " + t.Summary}}, s.schema()...)})
	}
	typeSchema := object{{"description", "the kind of step"}, {"type", "string"}}
	if len(types) > 0 {
		typeSchema = append(typeSchema, member{"oneOf", types})
	}
	step := object{
		{"type", "object"},
		{"properties", object{
			{"id", object{{"description", "the step's name: expressions of later steps use it as steps.ID.outputs"}, {"type", "string"}, {"pattern", idPattern}}},
			{"type", typeSchema},
			{"with", object{{"description", "inputs"}, {"type", "object"}}},
			{"expect", object{
				{"description", "conditions that must hold afterwards: CEL over outputs, params and steps.ID.outputs"},
				{"type", "array"}, {"items", object{{"type", "string"}, {"minLength", 1}}},
			}},
		}},
		{"required", []string{"id", "type"}},
		{"additionalProperties", false},
	}
	if len(conditions) > 0 {
		step = append(step, member{"allOf", conditions})
	}
	defs := object{
		{"expression", object{{"description", "text with an expression: ${params.NAME} or ${steps.ID.outputs.NAME}"}, {"type", "string"}, {"pattern", expressionPattern}}},
		{"bool", orExpression(object{{"type", "boolean"}})},
		{"int", orExpression(object{{"type", "integer"}})},
		{"duration", orExpression(object{{"type", "string"}, {"pattern", durationPattern}})},
		{"strings", orExpression(object{{"type", "array"}, {"items", object{{"type", "string"}}}})},
		{"secret", secretSchema()},
		{"step", step},
	}
	return append(defs, inputs...)
}

// secretSchema is a text in clear (which draws a warning) or exactly one source.
func secretSchema() object {
	source, err := shapeOf(secretType)
	if err != nil {
		return nil
	}
	from := append(object{{"description", "where the secret is read from; exactly one source"}}, source.elem.objectSchema()...)
	return object{{"anyOf", []any{
		object{{"type", "string"}, {"not", object{{"$ref", "#/$defs/expression"}}}},
		object{
			{"type", "object"},
			{"properties", object{{"valueFrom", append(from, member{"minProperties", 1}, member{"maxProperties", 1})}}},
			{"required", []string{"valueFrom"}},
			{"additionalProperties", false},
		},
	}}}
}

// schema renders the shape. Whatever is not a mapping may also be an expression;
// the common shapes are defined once, which keeps the compilation of the whole cheap.
func (s *shape) schema() object {
	switch s.kind {
	case shapeString:
		return object{{"type", "string"}}
	case shapeBool:
		return object{{"$ref", "#/$defs/bool"}}
	case shapeInt:
		return object{{"$ref", "#/$defs/int"}}
	case shapeDuration:
		return object{{"$ref", "#/$defs/duration"}}
	case shapeSecret:
		return object{{"$ref", "#/$defs/secret"}}
	case shapeList:
		if s.elem.kind == shapeString {
			return object{{"$ref", "#/$defs/strings"}}
		}
		return orExpression(object{{"type", "array"}, {"items", s.elem.schema()}})
	case shapeMap:
		return object{{"type", "object"}, {"additionalProperties", s.elem.schema()}}
	default:
		return s.objectSchema()
	}
}

func orExpression(plain object) object {
	return object{{"anyOf", []any{plain, object{{"$ref", "#/$defs/expression"}}}}}
}

func (s *shape) objectSchema() object {
	properties, required := object{}, []string{}
	for _, f := range s.fields {
		var p object
		if f.doc != "" {
			p = append(p, member{"description", f.doc})
		}
		switch {
		case len(f.enum) > 0 && f.kind == shapeList:
			p = append(p, orExpression(object{{"type", "array"}, {"items", orExpression(object{{"enum", f.enum}})}})...)
		case len(f.enum) > 0:
			p = append(p, orExpression(object{{"enum", f.enum}})...)
		default:
			p = append(p, f.schema()...)
		}
		if f.value.IsValid() {
			p = append(p, member{"default", f.jsonDefault()})
		}
		properties = append(properties, member{f.name, p})
		if f.required && f.unless == "" {
			required = append(required, f.name)
		}
	}
	o := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return append(o, member{"additionalProperties", false})
}

// alternatives says of each section that makes fields optional: either it is
// there, or those fields are.
func (s *shape) alternatives() object {
	var either []any
	for _, section := range s.sections() {
		either = append(either, object{{"required", []string{section}}}, s.requiredWithout(section))
	}
	if either == nil {
		return nil
	}
	return object{{"anyOf", either}}
}

func (s *shape) sections() []string {
	var names []string
	for _, f := range s.fields {
		for _, name := range append(f.sections(), f.unless) {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *shape) requiredWithout(section string) object {
	required, properties := []string{}, object{}
	for _, f := range s.fields {
		if f.unless == section {
			required = append(required, f.name)
		}
		if inner := f.requiredWithout(section); inner != nil {
			properties = append(properties, member{f.name, inner})
		}
	}
	var o object
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	if len(properties) > 0 {
		o = append(o, member{"properties", properties})
	}
	return o
}

func (f *fieldShape) jsonDefault() any {
	switch f.kind {
	case shapeDuration:
		return f.deflt
	case shapeList:
		if f.deflt == "" {
			return []string{}
		}
		return strings.Split(f.deflt, ",")
	default:
		return f.value.Interface()
	}
}
