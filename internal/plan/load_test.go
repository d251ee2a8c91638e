package plan_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-multierror"

	"runbook/internal/plan"
)

// header is what every plan of these tests begins with: five lines.
const header = `apiVersion: runbook/v1
kind: Plan
metadata: {name: p, description: of a test}
instance: {etcd: {endpoints: [a]}, objectStorage: {endpoint: b}}
`

const stopped = header + "steps:\n  - {id: stopped, type: assertStopped}\n"

func codes(err error) string {
	var out []string
	for _, d := range plan.Diagnostics(err) {
		out = append(out, fmt.Sprintf("%s %s", d.Where(), d.Code))
	}
	return strings.Join(out, "; ")
}

func TestFilesThatAreNotPlansAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, path, want string }{
		{"no such file", filepath.Join(dir, "absent.yaml"), " file.unreadable"},
		{"a directory", dir, " file.not-a-file"},
		{"a pipe without a writer", pipe, " file.not-a-file"},
		{"a device", "/dev/zero", " file.not-a-file"},
		{"an empty file", file("empty", ""), " file.empty"},
		{"only a byte order mark", file("bom", "\uFEFF"), " file.empty"},
		{"only blanks", file("blank", "\n \n"), " file.empty"},
		{"one byte above 1 MiB", file("big", stopped+strings.Repeat("#", 1<<20-len(stopped)+1)), " file.too-big"},
		{"Latin-1", file("latin1", "# caf\u00e9\nname: caf\xe9\n"), ":2:10 file.not-utf8"},
		{"UTF-16", file("utf16", "\xff\xfea\x00:\x00"), ":1:1 file.not-utf8"},
		{"a NUL byte", file("nul", "apiVersion: runbook/v1\nkind: \x00\n"), ":2:1 yaml.syntax"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := plan.Load(test.path, testLanguage(), plan.Options{})
			if got := codes(err); got != test.path+test.want {
				t.Errorf("got %q, want %q", got, test.path+test.want)
			}
		})
	}
}

func TestFilesOfEveryEditorAreAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                  stopped,
		"a byte order mark":      "\uFEFF" + stopped,
		"Windows line ends":      strings.ReplaceAll(stopped, "\n", "\r\n"),
		"no last line end":       strings.TrimSuffix(stopped, "\n"),
		"a document sign":        "---\n" + stopped,
		"document signs around":  "---\n" + stopped + "...\n",
		"exactly 1 MiB":          stopped + strings.Repeat("#", 1<<20-len(stopped)),
		"a comment at each end":  "# first\n" + stopped + "# last\n",
		"a version directive":    "%YAML 1.1\n---\n" + stopped,
		"trailing blanks":        strings.ReplaceAll(stopped, "\n", "  \n"),
		"a description in chars": strings.Replace(stopped, "of a test", "für den Übergang", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load([]byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestColumnsCountCharactersWhateverTheFileEndsItsLinesWith(t *testing.T) {
	text := header + "steps:\n  - {id: stopped, type: assertStopped, expect: [\"'ü' == outputs.x\"]}\n"
	for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\uFEFF" + text} {
		_, err := load([]byte(text))
		if got, want := codes(err), "plan.yaml:6:65 expr.unknown-output"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAReadErrorIsToldWithItsCause(t *testing.T) {
	_, err := plan.Load("p.yaml", testLanguage(), plan.Options{ReadFile: func(path string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
	}})
	if want := "p.yaml: cannot read: permission denied"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAllProblemsAreOneMultierrorInTheOrderOfTheFile(t *testing.T) {
	text := strings.Replace(stopped, "name: p", "name: P", 1) + "  - {id: wal, type: resetWall}\n  - {id: stopped, type: start}\nextra: 1\n"
	_, err := load([]byte(text))
	var all *multierror.Error
	if !errors.As(err, &all) || len(all.Errors) != 4 {
		t.Fatalf("got %v", err)
	}
	want := `plan.yaml:3:18: a plan cannot be called "P"
plan.yaml:7:21: there is no step type resetWall
plan.yaml:8:10: id stopped is taken: line 6 has it already
plan.yaml:9:1: a plan has no field extra`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMistakesBeyondTheLimitAreCounted(t *testing.T) {
	_, err := load([]byte(header + "steps:\n" + strings.Repeat("  - 7\n", 1000)))
	all := plan.Diagnostics(err)
	last := all[len(all)-1]
	if len(all) != 201 || last.Code != "plan.too-many" || !strings.HasPrefix(last.Message, "800 more") {
		t.Errorf("%d diagnostics, the last: %s: %s", len(all), last.Code, last.Message)
	}
}

func TestAnchorsAndMergeKeysWork(t *testing.T) {
	p, err := load([]byte(`apiVersion: runbook/v1
kind: Plan
metadata: {name: p}
instance:
  etcd: {endpoints: &hosts [a, b]}
  objectStorage: {endpoint: c}
  wal: {nodeSeeds: *hosts}
steps:
  - id: stopped
    type: assertStopped
    with: &common {settle: 10s, health: *hosts}
  - id: again
    type: assertStopped
    with: {<<: *common, settle: 20s}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Instance.(settings).WAL.NodeSeeds; !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("nodeSeeds: %v", got)
	}
	in, err := p.Step("again").Bind(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(in); got != "{20s [a b]}" {
		t.Errorf("merged inputs: %v", got)
	}
	if len(p.Warnings) != 1 || p.Warnings[0].Code != "fact.twice" {
		t.Errorf("warnings: %v", p.Warnings)
	}
}

func TestARedactedPlanHoldsNoSecretInClear(t *testing.T) {
	for name, clear := range map[string]string{
		"plain":           `hunter2`,
		"single quotes":   `'hunter2'`,
		"double quotes":   `"hunter2"`,
		"escapes":         `"hunter2\"hunter2\x41"`,
		"an anchor":       `&s hunter2`,
		"repeated":        `hunter2 # hunter2, until May`,
		"a block":         "|\n      hunter2\n      more",
		"a folded text":   "hunter2\n      hunter2",
		"several words":   `hunter2 and more`,
		"an inner quote":  `'hunter2''hunter2'`,
		"a line in words": "\"hunter2 \\\n      hunter2\"",
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: runbook/v1\nkind: Plan\nmetadata: {name: p}\ninstance:\n  objectStorage: {endpoint: b}\n" +
				"  etcd:\n    endpoints: [a]\n    password: " + clear + "\nsteps: [{id: stopped, type: assertStopped}]\n"
			p, err := load([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			out := string(p.Redacted())
			if strings.Contains(out, "hunter") || strings.Contains(out, "x41") {
				t.Errorf("still there:\n%s", out)
			}
			if !strings.Contains(clear, "\n") && !strings.Contains(out, "steps: [{id: stopped") {
				t.Errorf("more than the secret is gone:\n%s", out)
			}
			if text := fmt.Sprintf("%v %+v %#v", p.Instance, p.Instance, p.Instance); strings.Contains(text, "hunter") {
				t.Errorf("the instance prints it: %s", text)
			}
		})
	}
}

func TestAPlanWithoutSecretsIsKeptAsItIs(t *testing.T) {
	p, err := load([]byte(stopped))
	if err != nil || string(p.Redacted()) != stopped {
		t.Errorf("%v\n%s", err, p.Redacted())
	}
}

func TestLargePlansAreRefusedOrLoadedInBoundedTime(t *testing.T) {
	for name, text := range map[string]string{
		"many expressions": header + "steps:\n" + strings.Repeat("  - {id: x, type: assertStopped, expect: [\"outputs.waited > duration('1s')\"]}\n", 10000),
		"open brackets":    strings.Repeat("[", 1<<20),
		"open mappings":    strings.Repeat("{a: ", 1<<18),
		"an open quote":    header + "x: \"" + strings.Repeat("y\n", 1<<18),
		"many keys":        header + strings.Repeat("k: 1\n", 1<<17),
		"different keys":   manyKeys(),
		"comments":         header + strings.Repeat("# c\n", 1<<17),
		"dashes":           strings.Repeat("- ", 1<<19),
		"question marks":   strings.Repeat("? ", 1<<19),
		"anchors":          strings.Repeat("- &a x\n- *a\n", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load([]byte(text)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func manyKeys() string {
	var b strings.Builder
	b.WriteString(header + "labels:\n")
	for i := range 60000 {
		fmt.Fprintf(&b, "  k%d: 1\n", i)
	}
	return b.String()
}
