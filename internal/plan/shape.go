package plan

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"runbook/internal/secret"
)

// shapeKind is what a field of a plan may hold.
type shapeKind int

const (
	shapeString shapeKind = iota
	shapeBool
	shapeInt
	shapeDuration
	shapeSecret
	shapeList
	shapeMap
	shapeObject
)

// shape is a Go type as a plan writes it. Schema, checks, decoder and help text
// are all made from it.
type shape struct {
	kind   shapeKind
	typ    reflect.Type  // without pointers
	elem   *shape        // of a list or a map; of a secret: its source
	fields []*fieldShape // of an object
}

type fieldShape struct {
	*shape
	name     string
	doc      string
	enum     []string
	deflt    string        // as written in the tag
	value    reflect.Value // the default, decoded; invalid: none
	required bool
	unless   string // the section of the instance that makes a required field optional
	index    []int  // in the Go struct
	pointer  bool
}

func (s *shape) names() []string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}

// needs reports whether a mapping of this shape cannot be left out.
func (s *shape) needs() bool {
	for _, f := range s.fields {
		if f.required {
			return true
		}
	}
	return false
}

// noun names what the shape wants.
func (s *shape) noun() string {
	switch s.kind {
	case shapeString, shapeSecret:
		return "string"
	case shapeBool:
		return "bool"
	case shapeInt:
		return "int"
	case shapeDuration:
		return "duration"
	case shapeList:
		return "list of " + s.elem.noun()
	case shapeMap:
		return "map of " + s.elem.noun()
	default:
		return "mapping"
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[secret.Value]()
)

// shapeOf reads a Go type and its tags. An error is a mistake in the program.
func shapeOf(t reflect.Type) (*shape, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &shape{typ: t}
	var err error
	switch {
	case t == durationType:
		s.kind = shapeDuration
	case t == secretType:
		s.kind = shapeSecret
		s.elem, err = shapeOf(reflect.TypeFor[secret.Source]())
	case t.Kind() == reflect.String:
		s.kind = shapeString
	case t.Kind() == reflect.Bool:
		s.kind = shapeBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s.kind = shapeInt
	case t.Kind() == reflect.Slice:
		s.kind = shapeList
		s.elem, err = shapeOf(t.Elem())
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		s.kind = shapeMap
		s.elem, err = shapeOf(t.Elem())
	case t.Kind() == reflect.Struct:
		s.kind = shapeObject
		s.fields, err = fieldsOf(t)
	default:
		err = fmt.Errorf("plan language: a field of type %s cannot be written in a plan", t)
	}
	return s, err
}

func fieldsOf(t reflect.Type) ([]*fieldShape, error) {
	var fields []*fieldShape
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" || sf.Anonymous && name == "" {
			continue
		}
		f, err := fieldOf(sf)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func fieldOf(sf reflect.StructField) (*fieldShape, error) {
	s, err := shapeOf(sf.Type)
	if err != nil {
		return nil, err
	}
	f := &fieldShape{
		shape: s, index: sf.Index, pointer: sf.Type.Kind() == reflect.Pointer,
		doc: sf.Tag.Get("doc"), required: sf.Tag.Get("required") != "",
	}
	f.unless, _ = strings.CutPrefix(sf.Tag.Get("required"), "unless ")
	if f.unless == "true" {
		f.unless = ""
	}
	f.name, _, _ = strings.Cut(sf.Tag.Get("json"), ",")
	if f.name == "" {
		return nil, fmt.Errorf("the json tag gives no name")
	}
	if enum := sf.Tag.Get("enum"); enum != "" {
		f.enum = strings.Split(enum, ",")
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		f.deflt = text
		if f.value, err = parseDefault(s, text); err != nil {
			return nil, fmt.Errorf("default %q: %w", text, err)
		}
	}
	return f, nil
}

// parseDefault decodes the text of a default tag; the items of a list are
// separated by commas.
func parseDefault(s *shape, text string) (reflect.Value, error) {
	v := reflect.New(s.typ).Elem()
	switch s.kind {
	case shapeString:
		v.SetString(text)
	case shapeBool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return v, err
	case shapeInt:
		i, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(i)
		return v, err
	case shapeDuration:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return v, err
	case shapeList:
		for item := range strings.SplitSeq(text, ",") {
			if text == "" {
				break
			}
			e, err := parseDefault(s.elem, item)
			if err != nil {
				return v, err
			}
			v.Set(reflect.Append(v, e))
		}
	default:
		return v, fmt.Errorf("a %s has no default", s.noun())
	}
	return v, nil
}
