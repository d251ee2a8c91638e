package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"runbook/internal/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

// brokenPlan is one section of testdata/broken: its name is a sentence, followed
// by what must be reported, each as "| line:column code".
type brokenPlan struct {
	name string
	want []string
	text []byte
}

func brokenPlans(t testing.TB) []brokenPlan {
	t.Helper()
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken plans: %v", err)
	}
	var plans []brokenPlan
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		topic := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, section := range archive.Files {
			parts := strings.Split(section.Name, "|")
			p := brokenPlan{name: topic + ": " + strings.TrimSpace(parts[0]), text: section.Data}
			for _, w := range parts[1:] {
				p.want = append(p.want, strings.TrimSpace(w))
			}
			plans = append(plans, p)
		}
	}
	return plans
}

// load loads text as plan.yaml.
func load(text []byte, set ...string) (*plan.Plan, error) {
	return plan.Load("plan.yaml", testLanguage(), plan.Options{
		Set:      set,
		ReadFile: func(string) ([]byte, error) { return text, nil },
	})
}

// diagnostics loads a plan and returns everything that is reported about it.
func diagnostics(t testing.TB, text []byte) []*plan.Diagnostic {
	t.Helper()
	p, err := load(text)
	switch {
	case err == nil:
		return p.Warnings
	case plan.Diagnostics(err) == nil:
		t.Fatalf("not a diagnostic: %v", err)
	}
	return plan.Diagnostics(err)
}

func TestBrokenPlansAreReportedWithCodeLineAndColumn(t *testing.T) {
	var page strings.Builder
	for _, p := range brokenPlans(t) {
		t.Run(p.name, func(t *testing.T) {
			if len(p.want) == 0 {
				t.Fatal("the section says nothing about what must be reported")
			}
			fmt.Fprintf(&page, "# %s\n", p.name)
			var got []string
			for _, d := range diagnostics(t, p.text) {
				got = append(got, fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Code))
				checkWords(t, d)
				write(&page, d)
			}
			page.WriteByte('\n')
			if diff := cmp.Diff(p.want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
	// The golden file is there to be read: what an operator sees of every broken plan.
	golden(t, "testdata/broken.golden", page.String())
}

func write(page *strings.Builder, d *plan.Diagnostic) {
	fmt.Fprintf(page, "%s: %s: %s [%s]\n", d.Where(), d.Severity, d.Message, d.Code)
	if d.Hint != "" {
		fmt.Fprintf(page, "  hint: %s\n", d.Hint)
	}
}

// checkWords holds a diagnostic to what all of them are: one line without a full
// stop, something to do, and never the value of a secret.
func checkWords(t *testing.T, d *plan.Diagnostic) {
	t.Helper()
	if strings.ContainsAny(d.Message+d.Hint, "\n\t") || strings.HasSuffix(d.Message, ".") || d.Message == "" {
		t.Errorf("%s: not one line without a full stop: %q", d.Code, d.Message)
	}
	if strings.Contains(d.Message+d.Hint, "hunter2") || strings.Contains(d.Message, "20022002") {
		t.Errorf("a secret is shown: %s", d.Message)
	}
	withoutHint := []string{"expr.limit", "expr.failed", "expr.type", "yaml.too-deep", "yaml.alias", "expr.syntax"}
	if d.Hint == "" && !slices.Contains(withoutHint, d.Code) {
		t.Errorf("%s has no hint: %s", d.Code, d.Message)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}
