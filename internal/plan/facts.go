package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// checkFacts goes through the steps as a run would and reports each fact that a
// step needs and does not find.
func (k *checker) checkFacts() {
	holders := map[Fact]*stepNode{} // the step that provided what holds now
	enders := map[Fact]*stepNode{}  // the step that ended what held before
	unknown := false                // a step of unknown type may provide anything
	for i, s := range k.nodes {
		if s.typ == nil {
			unknown = true
			continue
		}
		for _, r := range s.typ.Requires {
			if holders[r.Fact] == nil && !unknown && s.requires(r) {
				k.unmet(i, r, enders[r.Fact])
			}
		}
		for _, f := range s.typ.Provides {
			if first := holders[f]; first != nil {
				k.warn(s.pos, codeFactTwice, "%s is provided again: %s provides it already", f, first.name()).
					hint("remove one of the two steps, or leave it if the repetition is meant")
			}
			for _, ended := range f.ends() {
				if holders[ended] != nil {
					delete(holders, ended)
					enders[ended] = s
				}
			}
			holders[f] = s
		}
	}
}

// requires reports whether the requirement applies. A condition on inputs that are
// not known yet counts as met, one on inputs with mistakes as not met.
func (s *stepNode) requires(r Requirement) bool {
	switch {
	case r.If == nil:
		return true
	case s.inputs != nil:
		return r.If(s.inputs)
	default:
		return s.sound
	}
}

func (k *checker) unmet(i int, r Requirement, ender *stepNode) {
	s := k.nodes[i]
	needs := fmt.Sprintf("%s needs the fact %s", s.typ.Name, r.Fact)
	if r.When != "" {
		needs += " when " + r.When
	}
	if ender != nil {
		k.error(s.pos, codeFactEnded, "%s, which %s ends", needs, ender.name()).
			hint("move this step before it, or insert a step that provides %s again: %s", r.Fact, strings.Join(k.providers(r.Fact), ", "))
		return
	}
	d := k.error(s.pos, codeFactMissing, "%s, and no step before it provides that", needs)
	for _, later := range k.nodes[i+1:] {
		if later.typ != nil && slices.Contains(later.typ.Provides, r.Fact) {
			d.hint("move %s before this step: it provides %s", later.name(), r.Fact)
			return
		}
	}
	if names := k.providers(r.Fact); len(names) > 0 {
		d.hint("insert before line %d: - {id: %s, type: %s}", s.node.pos.Line, names[0], names[0])
	}
}

// providers lists the step types that provide a fact.
func (k *checker) providers(f Fact) []string {
	var names []string
	for _, t := range k.lang.Steps {
		if slices.Contains(t.Provides, f) {
			names = append(names, t.Name)
		}
	}
	return names
}

// targetField is the input by which several step types say to which WAL a plan leads.
const targetField = "targetWal"

// checkTargets reports steps that lead to different WALs, and a step that builds
// on an empty WAL of another kind than the one that the instance section names.
func (k *checker) checkTargets(instance reflect.Value) {
	var first *stepNode
	var firstTarget string
	for _, s := range k.nodes {
		target := textAt(reflect.ValueOf(s.inputs), targetField)
		if target == "" {
			continue
		}
		at := s.pos
		if given := s.with.get(targetField); given != nil {
			at = given.pos
		}
		switch {
		case first == nil:
			first, firstTarget = s, target
		case target != firstTarget:
			k.error(at, codeTargetDiffer, "%s is %s here, but %s in %s", targetField, target, firstTarget, first.name()).
				hint("make them the same: one plan leads to one WAL")
		}
		if wal := textAt(instance, "wal", "type"); wal != "" && wal != target && s.needsFact(WALEmpty) {
			k.error(at, codeTargetDiffer, "%s is %s, but the WAL of the instance, which is the one that gets emptied, is %s", targetField, target, wal).
				hint("set instance.wal.type to %s, or %s to %s", target, targetField, wal)
		}
	}
}

func (s *stepNode) needsFact(f Fact) bool {
	return slices.ContainsFunc(s.typ.Requires, func(r Requirement) bool { return r.Fact == f && s.requires(r) })
}

// textAt reads a string field by its names in the plan; "" when there is none.
func textAt(v reflect.Value, path ...string) string {
	for _, name := range path {
		for v.IsValid() && v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() || v.Kind() != reflect.Struct {
			return ""
		}
		next := reflect.Value{}
		for _, sf := range reflect.VisibleFields(v.Type()) {
			if tag, _, _ := strings.Cut(sf.Tag.Get("json"), ","); tag == name {
				next, _ = v.FieldByIndexErr(sf.Index)
			}
		}
		v = next
	}
	if !v.IsValid() || v.Kind() != reflect.String {
		return ""
	}
	return v.String()
}
