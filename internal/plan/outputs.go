package plan

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
)

// outputField is a field of an outputs struct that expressions may name.
type outputField struct {
	name  string
	typ   reflect.Type
	index []int
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
)

// outputsOf lists the fields of a struct type. A type that writes its own JSON has
// no fields that could be known here, and a secret must not be named: both are left out.
func outputsOf(t reflect.Type) []outputField {
	t = deref(t)
	if t.Kind() != reflect.Struct || t == timeType {
		return nil
	}
	var fields []outputField
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" || sf.Anonymous && name == "" || hidden(sf.Type) {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		fields = append(fields, outputField{name, sf.Type, sf.Index})
	}
	return fields
}

func hidden(t reflect.Type) bool {
	switch t = deref(t); t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return true
	default:
		return t != timeType && !t.Implements(textMarshaler) && t.Implements(jsonMarshaler)
	}
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// outputNames lists the names of an outputs struct.
func outputNames(t reflect.Type) []string {
	var names []string
	for _, f := range outputsOf(t) {
		names = append(names, f.name)
	}
	return names
}

// outputNamed returns the type of a field by its name.
func outputNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range outputsOf(t) {
		if f.name == name {
			return f.typ, true
		}
	}
	return nil, false
}

// celTypeOf is the type that expressions see. Structs are declared on the way.
func (p *typeProvider) celTypeOf(t reflect.Type) *cel.Type {
	t = deref(t)
	switch {
	case t == durationType:
		return cel.DurationType
	case t == timeType:
		return cel.TimestampType
	case t.Implements(textMarshaler):
		return cel.StringType
	}
	switch t.Kind() {
	case reflect.String:
		return cel.StringType
	case reflect.Bool:
		return cel.BoolType
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return cel.IntType
	case reflect.Float32, reflect.Float64:
		return cel.DoubleType
	case reflect.Slice, reflect.Array:
		return cel.ListType(p.celTypeOf(t.Elem()))
	case reflect.Map:
		return cel.MapType(cel.StringType, p.celTypeOf(t.Elem()))
	case reflect.Struct:
		return p.structType(t)
	default:
		return cel.DynType
	}
}

// outputValue is an outputs struct as expressions see it: structs become maps by
// their JSON names, absent pointers are left out, so that has() is false.
func outputValue(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.Type() == durationType || v.Type() == timeType {
		return v.Interface()
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return nil
		}
		return string(text)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Slice, reflect.Array:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = outputValue(v.Index(i))
		}
		return items
	case reflect.Map:
		m := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = outputValue(it.Value())
		}
		return m
	case reflect.Struct:
		return structValue(v)
	default:
		return intValue(v)
	}
}

func structValue(v reflect.Value) map[string]any {
	m := map[string]any{}
	for _, f := range outputsOf(v.Type()) {
		fv, err := v.FieldByIndexErr(f.index)
		if err != nil {
			continue // behind an embedded pointer that is nil
		}
		if value := outputValue(fv); value != nil {
			m[f.name] = value
		}
	}
	return m
}

func intValue(v reflect.Value) any {
	if v.CanInt() {
		return v.Int()
	}
	if v.CanUint() {
		return int64(min(v.Uint(), math.MaxInt64)) // counts do not get there
	}
	return nil
}

// outputFields describes outputs for people.
func outputFields(t reflect.Type) []Field {
	var out []Field
	for _, f := range outputsOf(t) {
		sf := deref(t).FieldByIndex(f.index)
		d := Field{Name: f.name, Type: outputNoun(f.typ), Doc: sf.Tag.Get("doc")}
		inner := deref(f.typ)
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = deref(inner.Elem())
		}
		if inner != deref(t) {
			d.Fields = outputFields(inner)
		}
		out = append(out, d)
	}
	return out
}

func outputNoun(t reflect.Type) string {
	t = deref(t)
	switch {
	case t == durationType:
		return "duration"
	case t == timeType:
		return "timestamp"
	case t.Implements(textMarshaler), t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "double"
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return "list of " + outputNoun(t.Elem())
	case t.Kind() == reflect.Map:
		return "map of " + outputNoun(t.Elem())
	case t.Kind() == reflect.Struct:
		return "mapping"
	case t.Kind() == reflect.Interface:
		return "any"
	default:
		return "int"
	}
}
