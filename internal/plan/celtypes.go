package plan

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// typeProvider tells CEL the fields of params, of steps and of outputs. Type
// names contain blanks, so that no expression can name them.
type typeProvider struct {
	types.Provider
	structs map[string]*structFields
	byType  map[reflect.Type]*cel.Type
}

type structFields struct {
	names []string
	types map[string]*cel.Type
}

func newTypeProvider(standard types.Provider) *typeProvider {
	return &typeProvider{Provider: standard, structs: map[string]*structFields{}, byType: map[reflect.Type]*cel.Type{}}
}

func (p *typeProvider) declare(name string) (*cel.Type, *structFields) {
	fields := &structFields{types: map[string]*cel.Type{}}
	p.structs[name] = fields
	return cel.ObjectType(name), fields
}

func (f *structFields) add(name string, t *cel.Type) {
	f.names = append(f.names, name)
	f.types[name] = t
}

// structType declares a Go struct, once; it may contain itself.
func (p *typeProvider) structType(t reflect.Type) *cel.Type {
	if known, ok := p.byType[t]; ok {
		return known
	}
	object, fields := p.declare(fmt.Sprintf("mapping %d", len(p.byType)))
	p.byType[t] = object
	for _, f := range outputsOf(t) {
		fields.add(f.name, p.celTypeOf(f.typ))
	}
	return object
}

// FindStructType implements types.Provider.
func (p *typeProvider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.structs[name]; ok {
		return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *typeProvider) FindStructFieldNames(name string) ([]string, bool) {
	if s, ok := p.structs[name]; ok {
		return s.names, true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider. Without getters CEL reads the
// fields from maps, which is what outputValue makes.
func (p *typeProvider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if s, ok := p.structs[name]; ok {
		t, ok := s.types[field]
		return &types.FieldType{Type: t}, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// celNoun names a type of CEL in an operator's words.
func celNoun(t *cel.Type) string {
	switch t.Kind() {
	case types.ListKind:
		return "list of " + celNoun(t.Parameters()[0])
	case types.StructKind, types.MapKind:
		return "mapping"
	case types.DurationKind:
		return "duration"
	case types.TimestampKind:
		return "timestamp"
	case types.DynKind, types.TypeParamKind:
		return "any"
	default:
		return t.String()
	}
}

// accepts reports whether a field of this shape can take a value of type t; a
// type that is known only at run time is decided then.
func (s *shape) accepts(t *cel.Type) bool {
	if t.Kind() == types.DynKind || t.Kind() == types.TypeParamKind {
		return true
	}
	switch s.kind {
	case shapeString:
		return t.Kind() == types.StringKind
	case shapeBool:
		return t.Kind() == types.BoolKind
	case shapeInt:
		return t.Kind() == types.IntKind
	case shapeDuration:
		return t.Kind() == types.DurationKind || t.Kind() == types.StringKind
	case shapeList:
		return t.Kind() == types.ListKind && s.elem.accepts(t.Parameters()[0])
	default:
		return false
	}
}

// printable reports whether a value of type t can stand inside text.
func printable(t *cel.Type) bool {
	switch t.Kind() {
	case types.StringKind, types.BoolKind, types.IntKind, types.DoubleKind, types.DurationKind, types.DynKind:
		return true
	default:
		return false
	}
}
