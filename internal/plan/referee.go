package plan

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// rejected is one place that the schema does not accept.
type rejected struct {
	path    []string // from the root: field names and list indices
	keyword string   // of the schema
}

// askReferee starts to check a document against the JSON schema and returns how to
// wait for the answer. Compiling the schema takes as long as all other checks
// together, so that it runs beside them.
func (g *grammar) askReferee(document any) (answer func() ([]rejected, error)) {
	var complaints []rejected
	var err error
	var running sync.WaitGroup
	running.Go(func() { complaints, err = g.referee(document) })
	return func() ([]rejected, error) {
		running.Wait()
		return complaints, err
	}
}

// referee checks a document against the generated JSON schema. It has the last
// word: what it rejects is not a plan, even where the checks that speak to
// people see nothing wrong.
func (g *grammar) referee(document any) ([]rejected, error) {
	text, err := marshalJSON(g.schema())
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	const url = "urn:runbook:plan:v1"
	if err := c.AddResource(url, bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("plan schema: %w", err)
	}
	s, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("plan schema: %w", err)
	}
	err = s.Validate(document)
	if err == nil {
		return nil, nil
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, fmt.Errorf("plan schema: %w", err)
	}
	return leaves(ve, nil), nil
}

func leaves(e *jsonschema.ValidationError, out []rejected) []rejected {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			out = leaves(cause, out)
		}
		return out
	}
	r := rejected{keyword: e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(strings.TrimPrefix(e.InstanceLocation, "/"), "/") {
		if token != "" {
			r.path = append(r.path, unescape.Replace(token))
		}
	}
	return append(out, r)
}

// walk returns the node at a path, or the last one on the way there.
func (n *node) walk(path []string) *node {
	for _, token := range path {
		next := n.get(token)
		if i, err := strconv.Atoi(token); err == nil && n.kind == nodeList && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}
