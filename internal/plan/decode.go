package plan

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"runbook/internal/secret"
)

// decoder fills Go values from nodes; vars are what expressions may read.
type decoder struct {
	file string
	vars map[string]any
}

func (d *decoder) fail(at Position, code, format string, args ...any) *Diagnostic {
	problem := &Diagnostic{File: d.file, Line: at.Line, Column: at.Column, Severity: SeverityError,
		Code: code, Message: fmt.Sprintf(format, args...)}
	return problem.tidy()
}

// object decodes a mapping, or nothing (n is nil), into a new value of the shape.
func (d *decoder) object(n *node, s *shape) (reflect.Value, *Diagnostic) {
	v := reflect.New(s.typ).Elem()
	for _, f := range s.fields {
		target := fieldByIndex(v, f.index)
		var child *node
		if n != nil {
			child = n.get(f.name)
		}
		if child == nil && f.pointer {
			continue
		}
		if child == nil && f.kind != shapeObject {
			if f.value.IsValid() {
				put(target, cloneDefault(f.value))
			}
			continue
		}
		fv, problem := d.value(child, f.shape, f.enum, f.name)
		if problem != nil {
			return v, problem
		}
		put(target, fv)
	}
	if told, ok := v.Addr().Interface().(interface{ SetGiven(fields []string) }); ok {
		told.SetGiven(given(n, s))
	}
	return v, nil
}

// given lists the fields of a mapping that are written out.
func given(n *node, s *shape) []string {
	names := []string{}
	for _, f := range s.fields {
		child := n.get(f.name)
		if child == nil {
			continue
		}
		names = append(names, f.name)
		if f.kind == shapeObject {
			for _, inner := range given(child, f.shape) {
				names = append(names, f.name+"."+inner)
			}
		}
	}
	return names
}

// fieldByIndex is v's field, with embedded pointers made on the way.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// put stores value in target, behind a pointer where target is one.
func put(target, value reflect.Value) {
	if target.Kind() == reflect.Pointer {
		p := reflect.New(target.Type().Elem())
		put(p.Elem(), value)
		target.Set(p)
		return
	}
	target.Set(value)
}

func cloneDefault(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
	}
	return v
}

func (d *decoder) value(n *node, s *shape, enum []string, label string) (reflect.Value, *Diagnostic) {
	switch {
	case s.kind == shapeObject:
		return d.object(n, s)
	case s.kind == shapeSecret:
		return d.secret(n, s)
	case n.tmpl != nil:
		v, err := n.tmpl.eval(d.vars)
		if err != nil {
			at := n.pos
			if e := n.tmpl.whole(); e != nil {
				at = e.pos
			}
			return reflect.Value{}, d.fail(at, codeExprFailed, "%s: %v", label, err)
		}
		return d.assign(n, v, s, enum, label)
	case s.kind == shapeList:
		list := reflect.MakeSlice(s.typ, 0, len(n.items))
		for i, item := range n.items {
			v, problem := d.value(item, s.elem, enum, fmt.Sprintf("%s[%d]", label, i))
			if problem != nil {
				return list, problem
			}
			list = appendTo(list, v)
		}
		return list, nil
	case s.kind == shapeMap:
		m := reflect.MakeMap(s.typ)
		for _, e := range n.entries {
			v, problem := d.value(e.value, s.elem, enum, label+"."+e.key)
			if problem != nil {
				return m, problem
			}
			setKey(m, e.key, v)
		}
		return m, nil
	default:
		return d.assign(n, n.value, s, enum, label)
	}
}

func appendTo(list, v reflect.Value) reflect.Value {
	item := reflect.New(list.Type().Elem()).Elem()
	put(item, v)
	return reflect.Append(list, item)
}

func setKey(m reflect.Value, key string, v reflect.Value) {
	item := reflect.New(m.Type().Elem()).Elem()
	put(item, v)
	m.SetMapIndex(reflect.ValueOf(key).Convert(m.Type().Key()), item)
}

// assign converts a value of an expression or of a scalar to the shape's type.
func (d *decoder) assign(n *node, v any, s *shape, enum []string, label string) (reflect.Value, *Diagnostic) {
	out := reflect.New(s.typ).Elem()
	wrong := d.fail(n.pos, codeExprType, "%s: want %s, found %s", label, s.noun(), goNoun(v))
	switch v := v.(type) {
	case string:
		switch s.kind {
		case shapeString:
			if len(enum) > 0 && !slices.Contains(enum, v) {
				problem := d.fail(n.pos, codeValue, "%s cannot be %q", label, v)
				problem.Hint = didYouMean(v, enum)
				return out, problem
			}
			out.SetString(v)
			return out, nil
		case shapeDuration:
			duration, err := parseDuration(v)
			if err != nil {
				problem := d.fail(n.pos, codeType, "%s: want duration, found string %q", label, v)
				problem.Hint = typeHint(n, "duration")
				return out, problem
			}
			out.SetInt(int64(duration))
			return out, nil
		}
	case bool:
		if s.kind == shapeBool {
			out.SetBool(v)
			return out, nil
		}
	case int64:
		if s.kind == shapeInt && !out.OverflowInt(v) {
			out.SetInt(v)
			return out, nil
		}
	case float64:
		if s.kind == shapeInt && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			out.SetInt(int64(v))
			return out, nil
		}
	case time.Duration:
		if s.kind == shapeDuration {
			out.SetInt(int64(v))
			return out, nil
		}
	case []string:
		items := make([]any, len(v))
		for i := range v {
			items[i] = v[i]
		}
		return d.assign(n, items, s, enum, label)
	case []any:
		if s.kind == shapeList {
			return d.assignList(n, v, s, enum, label)
		}
	}
	return out, wrong
}

func (d *decoder) assignList(n *node, items []any, s *shape, enum []string, label string) (reflect.Value, *Diagnostic) {
	list := reflect.MakeSlice(s.typ, 0, len(items))
	for i, item := range items {
		v, problem := d.assign(n, item, s.elem, enum, fmt.Sprintf("%s[%d]", label, i))
		if problem != nil {
			return list, problem
		}
		list = appendTo(list, v)
	}
	return list, nil
}

func (d *decoder) secret(n *node, s *shape) (reflect.Value, *Diagnostic) {
	from := n.get("valueFrom")
	if from == nil {
		return reflect.ValueOf(secret.Value{Literal: n.text}), nil
	}
	v, problem := d.object(from, s.elem)
	if problem != nil {
		return v, problem
	}
	source := v.Interface().(secret.Source)
	return reflect.ValueOf(secret.Value{ValueFrom: &source}), nil
}

// goNoun names a value that an expression gave.
func goNoun(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("string %q", v)
	case bool:
		return fmt.Sprintf("bool (%v)", v)
	case int64:
		return fmt.Sprintf("int (%v)", v)
	case float64:
		return fmt.Sprintf("double (%v)", v)
	case time.Duration:
		return fmt.Sprintf("duration (%v)", v)
	case []any, []string:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return strings.ToLower(fmt.Sprintf("%T", v))
	}
}

// templates lists the templates below a node.
func (n *node) templates() []*template {
	if n == nil {
		return nil
	}
	var out []*template
	if n.tmpl != nil {
		out = append(out, n.tmpl)
	}
	for _, item := range n.items {
		out = append(out, item.templates()...)
	}
	for _, e := range n.entries {
		out = append(out, e.value.templates()...)
	}
	return out
}
