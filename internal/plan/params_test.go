package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/plan"
)

const withParams = `apiVersion: runbook/v1
kind: Plan
metadata: {name: p}
params:
  root: {type: string, default: by-dev, enum: [by-dev, prod, "7"]}
  parallel: {type: int, default: 8}
  raise: {type: bool, default: false}
  hosts: {type: list, default: [a]}
  bucket: {type: string}
  note: {type: string, required: false}
instance:
  etcd: {endpoints: "${params.hosts}", rootPath: "${params.root}"}
  objectStorage: {endpoint: b, bucket: "${params.bucket + params.note}"}
steps:
  - {id: stopped, type: assertStopped}
  - {id: wal, type: resetWal, with: {raiseCounter: "${params.raise}", parallel: "${params.parallel}"}}
`

// loadValues loads withParams with the given values files and assignments.
func loadValues(values map[string]string, files []string, set ...string) (*plan.Plan, error) {
	return plan.Load("plan.yaml", testLanguage(), plan.Options{
		Set: set, ValuesFiles: files,
		ReadFile: func(path string) ([]byte, error) {
			if path == "plan.yaml" {
				return []byte(withParams), nil
			}
			return []byte(values[path]), nil
		},
	})
}

func TestTheCommandLineWinsOverValuesFilesAndThoseOverDefaults(t *testing.T) {
	p, err := loadValues(map[string]string{
		"one.yaml": "bucket: one\nparallel: 1\nhosts: [x, y]\nraise: true\n",
		"two.yaml": "# the later file wins\nparallel: 2\nbucket: two\n",
	}, []string{"one.yaml", "two.yaml"}, "bucket=three", "bucket=f=our", "root=prod")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"root": "prod", "parallel": int64(2), "raise": true,
		"hosts": []string{"x", "y"}, "bucket": "f=our", "note": "",
	}
	if diff := cmp.Diff(want, p.Params); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	if got := p.Instance.(settings).Objects.Bucket; got != "f=our" {
		t.Errorf("bucket: %s", got)
	}
	in, ok := p.Step("wal").StaticInputs()
	if want := (resetWalInputs{RaiseCounter: true, NodeSweep: "auto", Parallel: 2}); !ok || in != want {
		t.Errorf("inputs: %+v", in)
	}
}

func TestValuesOfTheCommandLineAreReadAsTheTypeOfTheParam(t *testing.T) {
	for _, test := range []struct {
		set  string
		want any
	}{
		{"root=7", "7"}, // a string stays one
		{"bucket=true", "true"},
		{"bucket=", ""},
		{"parallel=-3", int64(-3)},
		{"raise=true", true},
		{"hosts=a:1,b:2", []string{"a:1", "b:2"}},
		{"hosts=", []string{}},
		{"hosts=[a:1, 'b,c']", []string{"a:1", "b,c"}},
		{"hosts=[]", []string{}},
	} {
		t.Run(test.set, func(t *testing.T) {
			p, err := loadValues(nil, nil, "bucket=x", test.set)
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(test.set, "=")
			if diff := cmp.Diff(test.want, p.Params[name]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongValuesAreReportedWhereTheyWereGiven(t *testing.T) {
	for _, test := range []struct{ name, values, set, want string }{
		{name: "a param that does not exist", set: "bukket=x", want: "--set bukket: param.unknown: the plan has no param bukket; write bucket"},
		{name: "no equals sign", set: "bucket", want: `--set: param.set-form: "bucket" is not name=value; write --set name=value`},
		{name: "no name", set: "=x", want: `--set: param.set-form: "=x" is not name=value; write --set name=value`},
		{name: "text for an int", set: "parallel=many", want: `--set parallel: param.value: parallel: want int, found string "many"; write a whole number, without quotes`},
		{name: "an int that is too big", set: "parallel=99999999999999999999", want: `--set parallel: param.value: parallel: want int, found string "99999999999999999999"; write a whole number, without quotes`},
		{name: "text for a bool", set: "raise=yes", want: `--set raise: param.value: raise: want bool, found string "yes"; write true or false, without quotes`},
		{name: "a value that enum does not list", set: "root=by-dve", want: `--set root: param.value: root: by-dve is not one of by-dev, prod, 7; give a value that the param allows`},
		{name: "numbers for a list", set: "hosts=[1, 2]", want: `--set hosts: param.value: hosts: want a list of strings, found one item that is int (1); write a list of quoted texts: ["a", "b"]`},
		{name: "an expression", set: "bucket=${params.root}", want: `--set bucket: param.value: bucket: an expression is not a value; give a value that the param allows`},
		{name: "an unknown name in a file", values: "bucket: x\nrot: y\n", want: "v.yaml:2:1: param.unknown: the plan has no param rot; write root"},
		{name: "another type in a file", values: "bucket: 7\n", want: `v.yaml:1:9: param.value: bucket: want string, found int (7); quote it: "7"`},
		{name: "a nested file", values: "bucket: {name: x}\n", want: `v.yaml:1:9: param.value: bucket: want string, found a mapping; write one line for each param, not nested`},
		{name: "a file that is a list", values: "- bucket\n", want: "v.yaml:1:1: plan.wrong-type: want name: value lines, found a list; write one line for each param: name: value"},
		{name: "an expression in a file", values: "bucket: ${params.root}\n", want: "v.yaml:1:9: param.value: bucket: an expression is not a value; give a value that the param allows"},
		{name: "broken YAML in a file", values: "bucket: 'x\n", want: "v.yaml:1:1: yaml.syntax: not valid YAML: a quote is opened and never closed; look at this line and at the end of the one before: indentation, quotes, brackets"},
		{name: "a name twice in a file", values: "bucket: x\nbucket: y\n", want: "v.yaml:2:1: yaml.duplicate-key: bucket is given twice: the first is on line 1; remove one of them"},
		{name: "an empty file", values: "", want: "v.yaml: file.empty: the file is empty; start from one of the plans in plans/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var files []string
			set := []string{"bucket=x"}
			if test.set != "" {
				set = append(set, test.set)
			} else {
				files, set = []string{"v.yaml"}, nil
				if !strings.Contains(test.values, "bucket") {
					set = []string{"bucket=x"}
				}
			}
			_, err := loadValues(map[string]string{"v.yaml": test.values}, files, set...)
			var got []string
			for _, d := range plan.Diagnostics(err) {
				got = append(got, fmt.Sprintf("%s: %s: %s; %s", d.Where(), d.Code, d.Message, d.Hint))
			}
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAValueFromTheCommandLineIsCheckedWhereItIsUsed(t *testing.T) {
	text := header + "params: {settle: {type: string}}\nsteps:\n  - {id: stopped, type: assertStopped, with: {settle: \"${params.settle}\"}}\n"
	_, err := load([]byte(text), "settle=soon")
	if got, want := codes(err), "plan.yaml:7:55 plan.wrong-type"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
