package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codesInSource reads codes.go: the constants whose name begins with code, by name.
func codesInSource(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = value
		}
		return true
	})
	return found
}

func TestEveryCodeIsInTheDocumentationAndNoOther(t *testing.T) {
	doc, err := os.ReadFile("../../docs/plan-language.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9]+\\.[a-z0-9-]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		documented = append(documented, m[1])
	}
	var inSource []string
	for _, code := range codesInSource(t) {
		inSource = append(inSource, code)
	}
	slices.Sort(documented)
	slices.Sort(inSource)
	if diff := cmp.Diff(inSource, documented); diff != "" {
		t.Errorf("codes (-source +docs/plan-language.md):\n%s", diff)
	}
}

func TestEveryCodeIsReportedSomewhereAndOnlyByItsConstant(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		if file == "codes.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for name, code := range codesInSource(t) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(source.String()) {
			t.Errorf("%s (%s) is never reported", name, code)
		}
		if strings.Contains(source.String(), `"`+code+`"`) {
			t.Errorf("%q is written out: use %s", code, name)
		}
	}
}

func TestEveryCodeHasABrokenPlan(t *testing.T) {
	// Reported of files, of the command line, or of what only the schema rejects:
	// other tests have them.
	elsewhere := []string{"file.", "param.unknown", "param.value", "param.set-form", "plan.too-many", "plan.schema"}
	seen := map[string]bool{}
	for _, p := range brokenPlans(t) {
		for _, w := range p.want {
			_, code, _ := strings.Cut(w, " ")
			seen[code] = true
		}
	}
	for _, code := range codesInSource(t) {
		known := slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(code, prefix) })
		if !seen[code] && !known {
			t.Errorf("no plan in testdata/broken is reported as %s", code)
		}
	}
}
