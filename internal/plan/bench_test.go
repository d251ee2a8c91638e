package plan_test

import (
	"sync"
	"testing"

	"runbook/internal/plan"
)

// Loading is most of what `runbook validate` does beyond starting: about half of
// it is the compilation of the schema, which runs beside the rest.
func BenchmarkLoad(b *testing.B) {
	text := []byte(withParams)
	for b.Loop() {
		if _, err := load(text, "bucket=x"); err != nil {
			b.Fatal(err)
		}
	}
}

// Time cannot be asserted on a busy machine; allocations can, and they follow it.
func TestLoadingAPlanStaysCheap(t *testing.T) {
	const most = 60_000
	text := []byte(withParams)
	allocs := testing.AllocsPerRun(5, func() {
		if _, err := load(text, "bucket=x"); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > most {
		t.Errorf("%.0f allocations, at most %d are expected", allocs, most)
	}
}

func TestAPlanMayBeUsedConcurrently(t *testing.T) {
	p := threeSteps(t, `{note: "${steps.wal.outputs.removed}${params.n}"}`, "outputs.removed > params.n")
	outputs := map[string]any{"wal": resetWalOutputs{Removed: 7}}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			in, err := p.Step("start").Bind(outputs)
			if err != nil || in.(startInputs).Note != "74" {
				t.Errorf("%+v %v", in, err)
			}
			outcome, err := p.Step("wal").Expectations[0].Check(outputs["wal"], nil)
			if err != nil || !outcome.OK {
				t.Errorf("%v %v", outcome, err)
			}
			if _, ok := p.Step("stopped").StaticInputs(); !ok {
				t.Error("not static")
			}
			if _, err := plan.Load("plan.yaml", testLanguage(), plan.Options{
				ReadFile: func(string) ([]byte, error) { return p.Source, nil },
			}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}
