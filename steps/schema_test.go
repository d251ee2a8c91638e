package steps_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/plan"
	"runbook/schema"
	"runbook/steps"
)

var update = flag.Bool("update", false, "rewrite schema/plan.schema.json")

func TestTheCommittedSchemaIsTheOneOfTheseStepTypes(t *testing.T) {
	want, err := plan.Schema(steps.Language())
	if err != nil {
		t.Fatal(err)
	}
	got := schema.Plan
	if *update {
		if err := os.WriteFile("../schema/plan.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("schema/plan.schema.json is not current (-want +committed):\n%s"+
			"run: go test ./steps -run Schema -update", diff)
	}
}
