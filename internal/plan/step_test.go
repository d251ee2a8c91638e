package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runbook/internal/plan"
	"runbook/internal/secret"
)

// threeSteps is a plan of three steps whose last one has these inputs.
func threeSteps(t *testing.T, with string, expect ...string) *plan.Plan {
	t.Helper()
	text := `apiVersion: runbook/v1
kind: Plan
metadata: {name: p}
params: {n: {type: int, default: 4}, hosts: {type: list, default: [a, b]}}
instance: {etcd: {endpoints: "${params.hosts}"}, objectStorage: {endpoint: b}}
steps:
  - {id: stopped, type: assertStopped, with: {settle: "${params.n}m"}}
  - id: wal
    type: resetWal
    expect:
`
	for _, e := range append(expect, "outputs.clean || params.n > 0") {
		text += "      - " + e + "\n"
	}
	p, err := load([]byte(text + "  - {id: start, type: start, with: " + with + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bind(t *testing.T, with string) startInputs {
	t.Helper()
	p := threeSteps(t, with)
	in, err := p.Step("start").Bind(map[string]any{
		"stopped": assertStoppedOutputs{Waited: 90 * time.Second},
		"wal": &resetWalOutputs{
			Removed: 16, LogIDCounter: counter{Before: 16, After: 17}, Prefix: "by-dev/woodpecker",
			Skipped: []string{"n1", "n2"}, Share: 0.5, PerTier: map[string]int64{"nodes": 3},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return in.(startInputs)
}

func TestInputsAreBoundWithTheirTypesAndDefaults(t *testing.T) {
	for _, test := range []struct {
		with string
		want startInputs
	}{
		{`{}`, startInputs{}},
		{`{logIdCounterFloor: "${steps.wal.outputs.logIdCounter.after}"}`, startInputs{LogIDCounterFloor: 17}},
		{`{logIdCounterFloor: "${steps.wal.outputs.logIdCounter.after + params.n}"}`, startInputs{LogIDCounterFloor: 21}},
		{`{logIdCounterFloor: 5}`, startInputs{LogIDCounterFloor: 5}},
		{`{note: "${steps.wal.outputs.removed} logs under ${steps.wal.outputs.metaPrefix}"}`, startInputs{Note: "16 logs under by-dev/woodpecker"}},
		{`{note: "waited ${steps.stopped.outputs.waited}, ${steps.wal.outputs.share}, ${true}"}`, startInputs{Note: "waited 1m30s, 0.5, true"}},
		{`{note: "$${not.an.expression} and $5"}`, startInputs{Note: "${not.an.expression} and $5"}},
		{`{note: "${'}' + \"{\" + r'\\'}"}`, startInputs{Note: `}{\`}},
		{`{note: "${{'a': 'b'}['a']}"}`, startInputs{Note: "b"}},
		{`{nodes: "${steps.wal.outputs.skippedNodes}"}`, startInputs{Nodes: []string{"n1", "n2"}}},
		{`{nodes: "${params.hosts.filter(h, h != 'a')}"}`, startInputs{Nodes: []string{"b"}}},
		{`{nodes: ["${steps.wal.outputs.skippedNodes[1]}", c]}`, startInputs{Nodes: []string{"n2", "c"}}},
		{`{timeout: "${steps.stopped.outputs.waited}"}`, startInputs{Timeout: 90 * time.Second}},
		{`{timeout: "${params.n * 2}m"}`, startInputs{Timeout: 8 * time.Minute}},
		{`{timeout: "${has(steps.wal.outputs.oldest) ? '1s' : '2s'}"}`, startInputs{Timeout: 2 * time.Second}},
		{`{logIdCounterFloor: "${steps.wal.outputs.perTier['nodes']}"}`, startInputs{LogIDCounterFloor: 3}},
		{`{targetWal: "${steps.wal.outputs.removed > 3 ? 'kafka' : 'pulsar'}"}`, startInputs{TargetWAL: "kafka"}},
		{`{token: {valueFrom: {env: "TOKEN_${params.n}"}}}`, startInputs{Token: secret.Value{ValueFrom: &secret.Source{Env: "TOKEN_4"}}}},
		{`{token: {valueFrom: {secretKeyRef: {name: s, key: k}}}}`,
			startInputs{Token: secret.Value{ValueFrom: &secret.Source{SecretKeyRef: &secret.KeyRef{Name: "s", Key: "k"}}}}},
	} {
		t.Run(test.with, func(t *testing.T) {
			if test.want.Timeout == 0 {
				test.want.Timeout = 5 * time.Minute // the default
			}
			if diff := cmp.Diff(test.want, bind(t, test.with)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheInstanceIsDecodedWithDefaultsAndAbsentSections(t *testing.T) {
	p, err := load([]byte(`apiVersion: runbook/v1
kind: Plan
metadata: {name: p}
instance:
  etcd: {endpoints: [a], tls: {caCert: /ca}}
  objectStorage: {endpoint: b, secure: true, accessKeyID: {valueFrom: {file: /key}}}
  labels: {team: storage}
steps: [{id: stopped, type: assertStopped}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		Etcd:    etcdSection{Endpoints: []string{"a"}, RootPath: "by-dev", TLS: &tlsSection{CACert: "/ca", ServerName: "etcd"}},
		Objects: objects{Endpoint: "b", Bucket: "a-bucket", Secure: true, AccessKeyID: secret.Value{ValueFrom: &secret.Source{File: "/key"}}},
		WAL:     walSection{Type: "woodpecker", MetaPrefix: "auto"},
		Labels:  map[string]string{"team": "storage"},
	}
	if diff := cmp.Diff(want, p.Instance); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInputsAreStaticUnlessTheyNameOutputs(t *testing.T) {
	p := threeSteps(t, `{logIdCounterFloor: "${steps.wal.outputs.removed}", note: "after ${steps.stopped.outputs.waited}"}`)
	in, ok := p.Step("stopped").StaticInputs()
	if !ok || in.(assertStoppedInputs).Settle != 4*time.Minute {
		t.Errorf("stopped: %+v, %v", in, ok)
	}
	if in, ok := p.Step("start").StaticInputs(); ok {
		t.Errorf("start is called static: %+v", in)
	}
	if diff := cmp.Diff([]string{"wal", "stopped"}, p.Step("start").Uses()); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	if p.Step("absent") != nil {
		t.Error("a step that does not exist was found")
	}
}

func TestBindingSaysWhatIsMissingOrDoesNotFit(t *testing.T) {
	ran := func(prefix string) map[string]any {
		return map[string]any{"wal": resetWalOutputs{Prefix: prefix}}
	}
	for _, test := range []struct {
		name, with string
		outputs    map[string]any
		want       string
	}{
		{"the step has not run", `{note: "${steps.wal.outputs.metaPrefix}"}`, nil,
			"plan.yaml:12:10: step wal has no outputs yet"},
		{"a value that is not allowed", `{targetWal: "${steps.wal.outputs.metaPrefix}"}`, ran("natsmq"),
			`plan.yaml:12:48: targetWal cannot be "natsmq"`},
		{"an index beyond the end", `{note: "${steps.wal.outputs.skippedNodes[0]}"}`, ran(""),
			"plan.yaml:12:46: note: index out of bounds: 0"},
		{"an absent output", `{timeout: "${steps.wal.outputs.oldest - steps.wal.outputs.oldest}"}`, ran(""),
			"plan.yaml:12:49: timeout: there is no value oldest (has(...) tells whether there is)"},
		{"text that is no duration", `{timeout: "${steps.wal.outputs.metaPrefix}"}`, ran("soon"),
			`plan.yaml:12:46: timeout: want duration, found string "soon"`},
		{"a division by zero", `{logIdCounterFloor: "${7 / steps.wal.outputs.removed}"}`, ran(""),
			"plan.yaml:12:59: logIdCounterFloor: division by zero"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := threeSteps(t, test.with).Step("start").Bind(test.outputs)
			if all := plan.Diagnostics(err); len(all) != 1 || all[0].Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestAnExpectationTellsWhatItLookedAt(t *testing.T) {
	own := &resetWalOutputs{
		LogIDCounter: counter{Before: 16, After: 15}, Prefix: "by-dev/wp",
		Skipped: []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"},
	}
	earlier := map[string]any{"stopped": assertStoppedOutputs{Waited: time.Second}}
	for _, test := range []struct {
		expect string
		ok     bool
		want   string
	}{
		{"outputs.logIdCounter.after >= outputs.logIdCounter.before", false, "outputs.logIdCounter.after is 15, outputs.logIdCounter.before is 16"},
		{"outputs.logIdCounter.after < outputs.logIdCounter.before", true, "outputs.logIdCounter.after is 15, outputs.logIdCounter.before is 16"},
		{"outputs.metaPrefix.startsWith('wp')", false, `outputs.metaPrefix is "by-dev/wp"`},
		{"size(outputs.skippedNodes) == 0", false, `outputs.skippedNodes is ["n1", "n2", "n3", "n4", "n5", and 2 more]`},
		{"outputs.skippedNodes.all(n, n == outputs.metaPrefix)", false, `outputs.skippedNodes is ["n1", "n2", "n3", "n4", "n5", and 2 more], outputs.metaPrefix is "by-dev/wp"`},
		{"outputs.clean", false, "outputs.clean is false"},
		{"outputs.share > 0", false, "outputs.share is 0"},
		{"has(outputs.oldest)", false, "outputs.oldest is absent"},
		{"steps.stopped.outputs.waited > duration('2s')", false, "steps.stopped.outputs.waited is 1s"},
		{"params.n == 5 && size(params.hosts) == 2", false, `params.n is 4, params.hosts is ["a", "b"]`},
		{"size(outputs.perTier) > 0", false, "outputs.perTier is a mapping of 0"},
		{"outputs.logIdCounter != outputs.logIdCounter", false, "outputs.logIdCounter is a mapping of 2"},
	} {
		t.Run(test.expect, func(t *testing.T) {
			p := threeSteps(t, "{}", test.expect)
			e := p.Step("wal").Expectations[0]
			outcome, err := e.Check(own, earlier)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.OK != test.ok || outcome.String() != test.want {
				t.Errorf("got %v: %s\nwant %v: %s", outcome.OK, outcome, test.ok, test.want)
			}
			if e.Source != test.expect || e.Position != (plan.Position{Line: 11, Column: 9}) {
				t.Errorf("%q at %v", e.Source, e.Position)
			}
		})
	}
}

func TestAnExpectationThatCannotBeEvaluatedIsAnErrorAndNotUnmet(t *testing.T) {
	p := threeSteps(t, "{}", "outputs.skippedNodes[0] == 'a'", "outputs.oldest > timestamp('2020-01-01T00:00:00Z')")
	for i, want := range []string{
		"plan.yaml:11:9: outputs.skippedNodes[0] == 'a': index out of bounds: 0",
		"plan.yaml:12:9: outputs.oldest > timestamp('2020-01-01T00:00:00Z'): there is no value oldest (has(...) tells whether there is)",
	} {
		_, err := p.Step("wal").Expectations[i].Check(resetWalOutputs{}, nil)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAConditionalRequirementIsDroppedWhenTheInputsSaySo(t *testing.T) {
	plan := func(target string) []byte {
		return []byte(header + "steps:\n  - {id: stopped, type: assertStopped}\n" +
			"  - {id: positions, type: resetCheckpoint, with: {targetWal: \"" + target + "\"}}\n")
	}
	if _, err := load(plan("kafka")); err != nil {
		t.Errorf("kafka needs no empty woodpecker WAL: %v", err)
	}
	if got := codes2(load(plan("woodpecker"))); got != "plan.yaml:7:10 fact.missing" {
		t.Errorf("woodpecker: %q", got)
	}
	// What is known only when the plan runs counts as needed.
	if got := codes2(load(plan("${steps.stopped.outputs.waited > duration('1s') ? 'kafka' : 'pulsar'}"))); got != "plan.yaml:7:10 fact.missing" {
		t.Errorf("an expression: %q", got)
	}
}

func codes2(_ *plan.Plan, err error) string { return codes(err) }

func TestStepsMaySwitchBetweenStoppedAndRunning(t *testing.T) {
	_, err := load([]byte(header + `steps:
  - {id: stopped, type: assertStopped}
  - {id: wal, type: resetWal}
  - {id: start, type: start}
  - {id: stoppedAgain, type: assertStopped}
  - {id: walAgain, type: resetWal}
`))
	if err != nil {
		t.Error(err)
	}
}
