package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/plan"
)

// FuzzLoad holds the loader to what it promises whatever the file is: an answer
// in bounded time, each diagnostic at a place that exists and in one line, the same
// answer twice, nothing that only the schema rejects; and of what is accepted, inputs that bind and no secret in the
// redacted form. Seeds are the broken plans, the shipped ones, and testdata/fuzz.
func FuzzLoad(f *testing.F) {
	for _, p := range brokenPlans(f) {
		f.Add(p.text, "")
	}
	for _, text := range []string{stopped, withParams} {
		f.Add([]byte(text), "bucket=x")
		f.Add([]byte(text), "hosts=[a, 'b']")
	}
	shipped, err := filepath.Glob("../../plans/*.yaml")
	if err != nil || len(shipped) == 0 {
		f.Fatalf("no shipped plans: %v", err)
	}
	for _, file := range shipped {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "nodeSeeds=a,b")
	}
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		var sets []string
		if set != "" {
			sets = append(sets, set)
		}
		begin := time.Now()
		p, err := load(text, sets...)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if (p == nil) == (err == nil) {
			t.Fatalf("plan %v and error %v", p, err)
		}
		checkDiagnostics(t, text, err)
		_, again := load(text, sets...)
		if diff := cmp.Diff(plan.Diagnostics(err), plan.Diagnostics(again)); diff != "" {
			t.Errorf("a second time (-first +second):\n%s", diff)
		}
		if p != nil {
			checkAccepted(t, p)
		}
	})
}

func checkDiagnostics(t *testing.T, text []byte, err error) {
	t.Helper()
	if err == nil {
		return
	}
	all := plan.Diagnostics(err)
	if len(all) == 0 {
		t.Fatalf("not a diagnostic: %v", err)
	}
	lines := 1
	for _, r := range string(text) {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) { // what YAML takes for the end of a line
			lines++
		}
	}
	for _, d := range all {
		if d.Line < 0 || d.Line > lines || d.Line > 0 && d.Column < 1 || d.Column > len(text)+1 {
			t.Errorf("%s: there is no such place (%d lines)", d.Error(), lines)
		}
		if d.Code == "plan.schema" {
			t.Errorf("%s: the schema rejects what the checks accept: %s", d.Where(), d.Message)
		}
		if d.Code == "" || d.Message == "" || !utf8.ValidString(d.Message+d.Hint) || strings.ContainsAny(d.Message, "\n\r") {
			t.Errorf("%q [%s] hint %q", d.Message, d.Code, d.Hint)
		}
	}
}

func checkAccepted(t *testing.T, p *plan.Plan) {
	t.Helper()
	s := p.Instance.(settings)
	redacted := string(p.Redacted())
	for _, clear := range []string{s.Etcd.Password.Literal, s.Objects.AccessKeyID.Literal, s.Objects.SecretAccessKey.Literal} {
		if clear != "" && !strings.Contains("********", clear) && strings.Contains(redacted, clear) {
			t.Errorf("a secret is still there:\n%s", redacted)
		}
	}
	for _, step := range p.Steps {
		if step.Type.Name == "" || step.ID == "" {
			t.Errorf("step %+v", step)
		}
		if in, ok := step.StaticInputs(); ok == (in == nil) || !ok && len(step.Uses()) == 0 {
			t.Errorf("step %s: static inputs %v %v", step.ID, in, ok)
		}
		for _, e := range step.Expectations {
			_, _ = e.Check(nil, nil) // may fail, must not panic
		}
	}
}
