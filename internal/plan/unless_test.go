package plan_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/plan"
)

// sourced is an instance section of which a part may come from elsewhere.
type sourced struct {
	Etcd  store  `json:"etcd" doc:"the etcd" required:"unless config"`
	Other *store `json:"other" doc:"another"`
	// Config makes what is required optional.
	Config *configSection `json:"config" doc:"where the rest comes from"`

	given []string
}

type store struct {
	Endpoints []string `json:"endpoints" doc:"members" required:"unless config"`
	RootPath  string   `json:"rootPath" doc:"root" default:"by-dev"`
}

type configSection struct {
	Files []string `json:"files" doc:"files"`
}

func (s *sourced) SetGiven(fields []string) { s.given = fields }

// A field may be required unless a section says where it comes from, and the
// schema agrees; the instance learns what was written out.
func TestFieldsRequiredUnlessASectionIsThere(t *testing.T) {
	lang := testLanguage()
	lang.Instance = reflect.TypeFor[sourced]()
	for _, test := range []struct {
		name, instance, codes string
		given                 []string
	}{
		{name: "everything written out", instance: "{etcd: {endpoints: [a]}}", given: []string{"etcd", "etcd.endpoints"}},
		{name: "everything from the section", instance: "{config: {files: [f]}}", given: []string{"config", "config.files"}},
		{name: "a part of each", instance: "{etcd: {rootPath: r}, config: {}}", given: []string{"etcd", "etcd.rootPath", "config"}},
		{name: "neither", instance: "{}", codes: ":4:11 plan.missing-field"},
		{name: "not all of it, without the section", instance: "{etcd: {rootPath: r}}", codes: ":4:18 plan.missing-field"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.yaml")
			text := "apiVersion: runbook/v1\nkind: Plan\nmetadata: {name: p}\ninstance: " + test.instance +
				"\nsteps: [{id: s, type: assertStopped}]\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := plan.Load(path, lang, plan.Options{})
			if test.codes != "" {
				if got := codes(err); got != path+test.codes {
					t.Fatalf("found %q, want %q", got, test.codes)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.given, p.Instance.(sourced).given); diff != "" {
				t.Errorf("fields given differ (-want +got):\n%s", diff)
			}
		})
	}
}
