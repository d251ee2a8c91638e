package plan

import (
	"reflect"
	"slices"
)

// Plan is a plan file that passed every check. Its steps still hold expressions
// over the outputs of earlier steps; everything else has a value.
type Plan struct {
	Name        string
	Description string
	Path        string
	Source      []byte         // the file as read; may hold a secret in clear: see Redacted
	Params      map[string]any // string, int64, bool or []string, by parameter name
	Instance    any            // a value of Language.Instance; nil when the language has none
	Steps       []*Step        // in the order of the file
	Warnings    []*Diagnostic  // in the order of the file

	secrets []*node // written in clear
}

// Options are what the command line adds to a plan file.
type Options struct {
	Set         []string                          // "name=value", the last one wins; wins over ValuesFiles
	ValuesFiles []string                          // YAML maps of name: value, the last one wins
	ReadFile    func(path string) ([]byte, error) // nil: regular files of at most 1 MiB
}

// Load reads the plan at path and checks it completely without any connection.
// When something is wrong the error is a *multierror.Error of *Diagnostic, in the
// order of the file, warnings included; Diagnostics takes it apart. Any other
// error is a mistake in lang.
func Load(path string, lang Language, opts Options) (*Plan, error) {
	g, err := newGrammar(lang)
	if err != nil {
		return nil, err
	}
	c := &collector{file: path}
	text, ok := c.read(path, opts.ReadFile)
	if !ok {
		return nil, c.err()
	}
	root := c.parse(text)
	if root == nil {
		return nil, c.err()
	}
	if root.kind != nodeMap {
		c.error(root.pos, codeType, "want a plan, found %s", root.found()).hint("start from one of the plans in plans/")
		return nil, c.err()
	}
	k := &checker{collector: c, grammar: g, src: newSource(text)}
	if !k.header(root) {
		return nil, c.err()
	}
	answer := g.askReferee(root.json())
	p := k.plan(root, opts)
	complaints, err := answer()
	if err != nil {
		return nil, err
	}
	if c.errors == 0 {
		k.overrule(root, complaints)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	p.Path, p.Source, p.secrets = path, text, k.secrets
	p.Warnings = c.sorted()
	return p, nil
}

// plan runs every check, in an order in which each can use what the ones before
// found out, and returns what can be said of the plan.
func (k *checker) plan(root *node, opts Options) *Plan {
	k.root(root)
	k.declareParams(root.get("params"))
	for _, file := range opts.ValuesFiles {
		k.readValues(file, opts.ReadFile)
	}
	for _, assignment := range opts.Set {
		k.set(assignment)
	}
	k.collectSteps(root)
	k.exprs = &expressions{collector: k.collector, params: k.params, names: k.paramNames, steps: k.nodes}

	p := &Plan{Params: map[string]any{}}
	instance := k.instanceSection(root)
	for i := range k.nodes {
		k.step(i)
	}
	k.settleParams()
	for name, param := range k.params {
		if param.hasValue {
			p.Params[name] = param.value
		}
	}
	if metadata := root.get("metadata"); metadata != nil {
		p.Name, p.Description = textOf(metadata.get("name")), textOf(metadata.get("description"))
	}
	var decoded reflect.Value
	if instance != nil {
		if decoded = k.decode(instance, k.instance, p.Params); decoded.IsValid() {
			p.Instance = decoded.Interface()
		}
	}
	for _, s := range k.nodes {
		p.Steps = append(p.Steps, k.finish(s, p.Params))
	}
	k.checkFacts()
	k.checkTargets(decoded)
	return p
}

func textOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
}

// instanceSection checks the instance section and returns it when it is sound.
func (k *checker) instanceSection(root *node) *node {
	if k.instance == nil {
		return nil
	}
	n := root.get("instance")
	if n == nil {
		if k.instance.needs() {
			k.error(root.pos, codeMissing, "the plan has no instance section").hint("add instance: and say where Milvus keeps its things")
			return nil
		}
		return &node{kind: nodeMap, pos: root.pos}
	}
	before := k.errors
	k.sections = n
	if k.isMapping(n, "instance") {
		k.object(n, k.instance, "instance", scope{step: -1})
	}
	if k.errors > before {
		return nil
	}
	return n
}

// decode evaluates and decodes a section that depends on params only. The value
// is invalid when a param has none or something does not fit, which is reported.
func (k *checker) decode(n *node, s *shape, params map[string]any) reflect.Value {
	for _, t := range n.templates() {
		for _, r := range t.references() {
			if r.root == "steps" {
				return reflect.Value{}
			}
			if r.root == "params" && params[r.path[0]] == nil {
				return reflect.Value{}
			}
		}
	}
	d := &decoder{file: k.file, vars: variables(params, nil)}
	v, problem := d.object(n, s)
	if problem != nil {
		k.errors++
		k.found = append(k.found, problem)
		return reflect.Value{}
	}
	return v
}

// finish makes the step of the plan, with its inputs when they are known already.
func (k *checker) finish(s *stepNode, params map[string]any) *Step {
	step := &Step{ID: s.id, Position: s.pos, Expectations: s.expect, file: k.file, with: s.with, params: params}
	for _, e := range s.expect {
		e.file, e.params = k.file, params
	}
	for _, t := range s.with.templates() {
		step.refs = append(step.refs, t.references()...)
	}
	if s.typ == nil {
		return step
	}
	step.Type, step.shape = s.typ.StepType, s.typ.inputs
	if s.sound {
		if v := k.decode(s.with, s.typ.inputs, params); v.IsValid() {
			s.inputs = v.Interface()
		}
	}
	return step
}

// overrule reports what only the JSON schema rejects. The checks above speak
// first because they speak better; where they saw nothing the schema's word counts.
func (k *checker) overrule(root *node, complaints []rejected) {
	var seen []Position
	for _, r := range complaints {
		at := root.walk(r.path).pos
		if slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		k.error(at, codeSchema, "the schema does not allow this value (%s)", r.keyword).
			hint("compare with `runbook schema`")
	}
}

// Step returns the step with this id, or nil.
func (p *Plan) Step(id string) *Step {
	for _, s := range p.Steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}
