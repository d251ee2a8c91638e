package plan_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"gopkg.in/yaml.v3"

	"runbook/internal/plan"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := plan.Schema(testLanguage())
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	if err := c.AddResource("plan.json", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.Draft != jsonschema.Draft2020 {
		t.Fatalf("draft: %v", s.Draft)
	}
	return s
}

// What only the program can know; the schema accepts such plans.
var beyondSchema = regexp.MustCompile(`^(fact|target|expr|param|secret\.in-clear|step\.duplicate-id)\b`)

// An editor that knows the schema and `runbook validate` must agree on the shape
// of a plan.
func TestTheSchemaRejectsWhatValidateCallsAMistakeOfShape(t *testing.T) {
	schema := compileSchema(t)
	for _, p := range brokenPlans(t) {
		if strings.HasPrefix(p.name, "yaml:") {
			continue // no schema sees these: what YAML gives them is another document
		}
		t.Run(p.name, func(t *testing.T) {
			var document any
			if err := yaml.Unmarshal(p.text, &document); err != nil {
				t.Skip("an editor reports the YAML")
			}
			err := schema.Validate(document)
			shape := false
			for _, w := range p.want {
				_, code, _ := strings.Cut(w, " ")
				shape = shape || !beyondSchema.MatchString(code)
			}
			differ := shape == (err == nil)
			if reason := exceptions[p.name]; differ != (reason != "") {
				t.Errorf("a mistake of shape: %v; the schema says: %v; expected difference: %q", shape, err, reason)
			}
		})
	}
}

// Where the two differ, and why.
var exceptions = map[string]string{
	"expressions: an expression whose value is not allowed":  "the value is known after evaluation",
	"expressions: text that makes no duration":               "the value is known after evaluation",
	"params: a name that expressions cannot use":             "a pattern finds it too",
	"shape: an int that does not fit":                        "JSON's integers have no end",
	"steps: an expression as a step type":                    "it is no step type either",
	"steps: an id that is a word of the expression language": "a pattern cannot exclude words",
}

func TestTheSchemaAcceptsValidPlans(t *testing.T) {
	schema := compileSchema(t)
	for _, text := range []string{stopped, withParams} {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
