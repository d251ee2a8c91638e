package steps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runbook/internal/instance"
	"runbook/internal/plan"
	"runbook/internal/secret"
	"runbook/steps"
	"runbook/steps/walreset"
)

func shipped(t *testing.T, name string, opts plan.Options) *plan.Plan {
	t.Helper()
	p, err := plan.Load("../plans/"+name+".yaml", steps.Language(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEveryShippedPlanIsValidWithoutWarningsAndNamesItsSchema(t *testing.T) {
	files, err := filepath.Glob("../plans/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("plans: %v %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			p := shipped(t, name, plan.Options{})
			for _, w := range p.Warnings {
				t.Error(w)
			}
			if p.Name != name || p.Description == "" {
				t.Errorf("called %q, described as %q", p.Name, p.Description)
			}
			line, _, _ := strings.Cut(string(p.Source), "\n")
			schema, ok := strings.CutPrefix(line, "# yaml-language-server: $schema=")
			if _, err := os.Stat(filepath.Join("../plans", schema)); !ok || err != nil {
				t.Errorf("the first line names no schema: %s (%v)", line, err)
			}
		})
	}
}

func TestTheColdPlansResetTheWALOfAStoppedMilvus(t *testing.T) {
	for name, raise := range map[string]bool{"cold-switch": false, "cold-restore": true} {
		t.Run(name, func(t *testing.T) {
			p := shipped(t, name, plan.Options{})
			if p.Steps[0].Type.Name != "assertStopped" || p.Steps[1].Type.Name != "resetWal" {
				t.Fatalf("steps: %s, %s", p.Steps[0].Type.Name, p.Steps[1].Type.Name)
			}
			in, ok := p.Step("wal").StaticInputs()
			if !ok || in.(walreset.Inputs).RaiseCounter != raise {
				t.Errorf("raiseCounter: got %+v, want %v", in, raise)
			}
			own := walreset.Outputs{LogIDCounter: walreset.Counter{Before: 16, After: 15}}
			outcome, err := p.Step("wal").Expectations[0].Check(own, nil)
			if err != nil || outcome.OK {
				t.Errorf("a counter that went down is accepted: %v %v", outcome, err)
			}
			if want := "outputs.logIdCounter.after is 15, outputs.logIdCounter.before is 16"; outcome.String() != want {
				t.Errorf("got %q, want %q", outcome, want)
			}
		})
	}
}

func TestTheColdPlansFitTheLabAsTheyAreAndProductionWithValues(t *testing.T) {
	lab := instance.Settings{
		Etcd: instance.Etcd{Endpoints: []string{"127.0.0.1:2379"}, RootPath: "by-dev", MetaSubPath: "meta"},
		ObjectStorage: instance.ObjectStorage{
			Endpoint: "127.0.0.1:9000", Bucket: "a-bucket", RootPath: "files",
			AccessKeyID:     secret.Value{ValueFrom: &secret.Source{Env: "MINIO_ACCESS_KEY"}},
			SecretAccessKey: secret.Value{ValueFrom: &secret.Source{Env: "MINIO_SECRET_KEY"}},
		},
		WAL: instance.WAL{Type: "woodpecker", StorageType: "service", MetaPrefix: "auto", NodeSeeds: []string{}},
	}
	production := lab
	production.Etcd.Endpoints = []string{"etcd-0:2379", "etcd-1:2379"}
	production.Etcd.RootPath = "prod"
	production.ObjectStorage.Bucket = "milvus"
	production.WAL.NodeSeeds = []string{"wp-0:18080"}

	settings := cmpopts.IgnoreUnexported(instance.Settings{}) // which fields were given
	values := filepath.Join(t.TempDir(), "values.yaml")
	text := "etcdEndpoints: [\"etcd-0:2379\", \"etcd-1:2379\"]\nrootPath: prod\nbucket: other\n"
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cold-switch", "cold-restore"} {
		if diff := cmp.Diff(lab, shipped(t, name, plan.Options{}).Instance, settings); diff != "" {
			t.Errorf("%s as it is (-want +got):\n%s", name, diff)
		}
		p := shipped(t, name, plan.Options{
			ValuesFiles: []string{values},
			Set:         []string{"bucket=milvus", "nodeSeeds=wp-0:18080"},
		})
		if diff := cmp.Diff(production, p.Instance, settings); diff != "" {
			t.Errorf("%s with values (-want +got):\n%s", name, diff)
		}
	}
}
