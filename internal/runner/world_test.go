package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/claim"
	"runbook/internal/console"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/interrupt"
	"runbook/internal/journal"
	"runbook/internal/labtest"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// world is one instance in a real etcd, and four step types that do to it what
// real ones do, in small: "calm" proves that nothing runs, "wipe" deletes the keys
// under {root}/data/ one transaction each, "rewrite" changes {root}/position after
// a before-image, "resume" uses what wipe found.
type world struct {
	client   *clientv3.Client
	endpoint string
	root     string
	state    string

	// hooks into the steps
	beforeUnit func(n int)                 // in wipe, before its n-th unit of work
	inUnit     func(ctx context.Context)   // in wipe, inside a unit of work
	wipeLies   bool                        // wipe says that it is done and is not
	resume     func(in resumeInputs) error // what resume does
	resumed    []int
}

func newWorld(t *testing.T, lab *labtest.Lab) *world {
	w := &world{client: lab.EtcdClient(t), endpoint: lab.Etcd.Endpoints[0], state: t.TempDir(),
		root: fmt.Sprintf("root-%x", time.Now().UnixNano())}
	for i := range 5 {
		w.put(t, fmt.Sprintf("data/%d", i), "x")
	}
	w.put(t, "position", "old")
	return w
}

func (w *world) put(t *testing.T, key, value string) {
	t.Helper()
	if _, err := w.client.Put(t.Context(), w.root+"/"+key, value); err != nil {
		t.Fatal(err)
	}
}

func (w *world) get(t *testing.T, key string) string {
	t.Helper()
	resp, err := w.client.Get(t.Context(), w.root+"/"+key)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func (w *world) revision(t *testing.T) int64 {
	t.Helper()
	resp, err := w.client.Get(t.Context(), w.root)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

func (w *world) marker(t *testing.T) (*claim.Marker, *claim.Holder) {
	t.Helper()
	marker, holder, err := claim.Read(t.Context(), w.client, w.root)
	if err != nil {
		t.Fatal(err)
	}
	return marker, holder
}

type calmInputs struct{}
type calmOutputs struct{}

type wipeInputs struct {
	Limit int `json:"limit" doc:"refuse to delete more" default:"100"`
}
type wipeOutputs struct {
	Removed int `json:"removed" doc:"keys removed"`
}

func (o wipeOutputs) Summary() []step.Line {
	return []step.Line{{Subject: "keys", Value: fmt.Sprintf("%d removed", o.Removed)}}
}

type rewriteInputs struct {
	To string `json:"to" doc:"the new position" default:"new"`
}
type rewriteOutputs struct{}

type resumeInputs struct {
	Floor int `json:"floor" doc:"what wipe removed" required:"true"`
}
type resumeOutputs struct{}

func (w *world) types() []step.Type {
	return []step.Type{
		step.Define(step.Spec[calmInputs, calmOutputs]{
			Name: "calm", Summary: "prove that nothing runs",
			Provides: []step.Provision[calmInputs]{{Fact: plan.MilvusStopped, Check: func(ctx context.Context, _ *step.Env, _ calmInputs) error { return w.nothingRuns(ctx) }}},
			Preview: func(ctx context.Context, _ *step.Env, _ calmInputs) (step.Preview, error) {
				return step.Preview{}, w.nothingRuns(ctx)
			},
			Run: func(ctx context.Context, _ *step.Env, _ calmInputs) (calmOutputs, error) {
				return calmOutputs{}, w.nothingRuns(ctx)
			},
		}),
		step.Define(step.Spec[wipeInputs, wipeOutputs]{
			Name: "wipe", Summary: "delete every key", Destructive: true,
			Requires: []step.Requirement[wipeInputs]{{Fact: plan.MilvusStopped}},
			Provides: []step.Provision[wipeInputs]{{Fact: plan.WALEmpty, Check: w.checkWiped}},
			Preview:  w.previewWipe, Run: w.runWipe,
		}),
		step.Define(step.Spec[rewriteInputs, rewriteOutputs]{
			Name: "rewrite", Summary: "write the new position", Destructive: true,
			Requires: []step.Requirement[rewriteInputs]{{Fact: plan.MilvusStopped}, {Fact: plan.WALEmpty}},
			Provides: []step.Provision[rewriteInputs]{{Fact: plan.PositionsReset, Check: w.checkRewritten}},
			Preview:  w.previewRewrite, Run: w.runRewrite,
			Undo: &step.Undo{Preview: w.previewRestore, Run: w.runRestore},
		}),
		step.Define(step.Spec[calmInputs, calmOutputs]{
			Name: "disturb", Summary: "do what somebody else may do at any time",
			Preview: func(context.Context, *step.Env, calmInputs) (step.Preview, error) { return step.Preview{}, nil },
			Run: func(ctx context.Context, _ *step.Env, _ calmInputs) (calmOutputs, error) {
				_, err := w.client.Put(ctx, w.root+"/data/x", "came back")
				return calmOutputs{}, err
			},
		}),
		step.Define(step.Spec[resumeInputs, resumeOutputs]{
			Name: "resume", Summary: "use what wipe found",
			Requires: []step.Requirement[resumeInputs]{{Fact: plan.WALEmpty}},
			Preview: func(_ context.Context, env *step.Env, in resumeInputs) (step.Preview, error) {
				return step.Preview{Lines: []step.Line{{Subject: "floor", Value: fmt.Sprint(in.Floor)}}}, nil
			},
			Run: func(_ context.Context, _ *step.Env, in resumeInputs) (resumeOutputs, error) {
				w.resumed = append(w.resumed, in.Floor)
				if w.resume != nil {
					return resumeOutputs{}, w.resume(in)
				}
				return resumeOutputs{}, nil
			},
		}),
	}
}

func (w *world) nothingRuns(ctx context.Context) error {
	resp, err := w.client.Get(ctx, w.root+"/meta/session/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && resp.Count > 0 {
		err = fault.Refuse("calm.running", "something runs").Hint("stop it")
	}
	return err
}

func (w *world) keys(ctx context.Context) ([]string, error) {
	resp, err := w.client.Get(ctx, w.root+"/data/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, kv := range resp.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

func (w *world) checkWiped(ctx context.Context, _ *step.Env, _ wipeInputs) error {
	keys, err := w.keys(ctx)
	if err == nil && len(keys) > 0 {
		err = fault.Refuse("wipe.left", "%d keys are left", len(keys)).At(keys[0])
	}
	return err
}

func (w *world) previewWipe(ctx context.Context, _ *step.Env, in wipeInputs) (step.Preview, error) {
	keys, err := w.keys(ctx)
	if err != nil {
		return step.Preview{}, err
	}
	if len(keys) > in.Limit {
		return step.Preview{}, fault.Refuse("wipe.limit", "%d keys are more than %d", len(keys), in.Limit)
	}
	return step.Preview{Changes: len(keys) > 0, Outputs: wipeOutputs{Removed: len(keys)}}, nil
}

func (w *world) runWipe(ctx context.Context, env *step.Env, _ wipeInputs) (wipeOutputs, error) {
	keys, err := w.keys(ctx)
	if err != nil {
		return wipeOutputs{}, err
	}
	progress := env.Report.Progress("deleting keys", int64(len(keys)))
	defer progress.Done()
	for i, key := range keys {
		if w.beforeUnit != nil {
			w.beforeUnit(i)
		}
		if ctx.Err() != nil {
			return wipeOutputs{}, fmt.Errorf("after %d keys: %w", i, ctx.Err())
		}
		unit := interrupt.Unit(ctx)
		if w.inUnit != nil {
			w.inUnit(unit)
		}
		if unit.Err() != nil {
			return wipeOutputs{}, unit.Err()
		}
		if w.wipeLies && i == len(keys)-1 {
			continue
		}
		if _, err := env.Claim.Commit(unit, nil, clientv3.OpDelete(key)); err != nil {
			return wipeOutputs{}, err
		}
		progress.Add(1)
	}
	return wipeOutputs{Removed: len(keys)}, nil
}

func (w *world) position(ctx context.Context) (string, error) {
	resp, err := w.client.Get(ctx, w.root+"/position")
	if err != nil || len(resp.Kvs) == 0 {
		return "", err
	}
	return string(resp.Kvs[0].Value), nil
}

func (w *world) checkRewritten(ctx context.Context, _ *step.Env, in rewriteInputs) error {
	got, err := w.position(ctx)
	if err == nil && got != in.To {
		err = fault.Refuse("rewrite.left", "the position is %q", got)
	}
	return err
}

func (w *world) previewRewrite(ctx context.Context, _ *step.Env, in rewriteInputs) (step.Preview, error) {
	got, err := w.position(ctx)
	return step.Preview{Changes: got != in.To}, err
}

func (w *world) runRewrite(ctx context.Context, env *step.Env, in rewriteInputs) (rewriteOutputs, error) {
	got, err := w.position(ctx)
	if err != nil || got == in.To {
		return rewriteOutputs{}, err
	}
	image, err := env.Journal.BeforeImage(env.StepID)
	if err != nil {
		return rewriteOutputs{}, err
	}
	if _, err := io.WriteString(image, got); err != nil {
		return rewriteOutputs{}, err
	}
	if err := image.Commit(); err != nil {
		return rewriteOutputs{}, err
	}
	_, err = env.Claim.Commit(ctx, nil, clientv3.OpPut(w.root+"/position", in.To))
	return rewriteOutputs{}, err
}

func (w *world) previewRestore(_ context.Context, _ *step.Env, image *journal.Image) (step.Preview, error) {
	was, err := readAll(image)
	return step.Preview{Changes: true, Lines: []step.Line{{Subject: "position", Value: was}}}, err
}

func (w *world) runRestore(ctx context.Context, env *step.Env, image *journal.Image) (step.Summarizer, error) {
	was, err := readAll(image)
	if err != nil {
		return nil, err
	}
	_, err = env.Claim.Commit(ctx, nil, clientv3.OpPut(w.root+"/position", was))
	return wipeOutputs{}, err
}

func readAll(image *journal.Image) (string, error) {
	r, err := image.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), err
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
	hidden *console.JSON
}

func (c *recorder) Emit(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *recorder) Progress(s event.Step, what string, total int64) *console.Progress {
	return c.hidden.Progress(s, what, total)
}

// of lists the events of one name.
func (c *recorder) of(name event.Name) []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []event.Event
	for _, e := range c.events {
		if e.Event == name {
			found = append(found, e)
		}
	}
	return found
}

const fullPlan = `
  - {id: calm, type: calm}
  - {id: wipe, type: wipe, expect: [outputs.removed >= 0]}
  - {id: rewrite, type: rewrite}
  - {id: resume, type: resume, with: {floor: "${steps.wipe.outputs.removed}"}}
`

func (w *world) runner(t *testing.T, steps string) (*Runner, *recorder) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	text := "apiVersion: runbook/v1\nkind: Plan\nmetadata: {name: test}\ninstance:\n" +
		"  etcd: {endpoints: [\"" + w.endpoint + "\"], rootPath: " + w.root + "}\n" +
		"  objectStorage: {endpoint: \"127.0.0.1:1\"}\nsteps:" + steps
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lang := plan.Language{Instance: reflect.TypeFor[instance.Settings]()}
	for _, kind := range w.types() {
		lang.Steps = append(lang.Steps, kind.StepType)
	}
	p, err := plan.Load(path, lang, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := instance.New(p.Instance.(instance.Settings), nil)
	t.Cleanup(func() { i.Close() })
	seen := &recorder{hidden: console.NewJSON(console.Terminal{W: io.Discard})}
	t.Cleanup(seen.hidden.Close)
	r, err := New(Config{Plan: p, Types: w.types(), Instance: i, Console: seen})
	if err != nil {
		t.Fatal(err)
	}
	return r, seen
}

// applied is how one apply --run went.
type applied struct {
	err  error
	seen *recorder
	past *journal.Past
	end  *event.End
}

// apply previews and runs.
func (w *world) apply(t *testing.T, steps string, ctx *interrupt.Context) applied {
	t.Helper()
	r, seen := w.runner(t, steps)
	p, err := r.Preview(ctx.Soft(), false)
	if err != nil {
		t.Fatal(err)
	}
	return w.carryOut(t, r, seen, p, ctx)
}

func (w *world) carryOut(t *testing.T, r *Runner, seen *recorder, p *Preview, ctx *interrupt.Context) applied {
	t.Helper()
	store, err := journal.Open(w.state)
	if err != nil {
		t.Fatal(err)
	}
	j, err := store.Create(journal.Record{Kind: journal.Apply, Plan: "test", Started: time.Now(), Steps: r.Steps(), PID: os.Getpid()}, journal.Contents{})
	if err != nil {
		t.Fatal(err)
	}
	a := applied{seen: seen, past: j.Past(), err: r.Run(ctx, p, j)}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	ends := seen.of(event.Ended)
	if len(ends) != 1 {
		t.Fatalf("%d ends were reported", len(ends))
	}
	a.end = ends[0].End
	report, err := a.past.Report()
	if err != nil {
		t.Fatal(err)
	}
	if report.Outcome() != string(a.end.Outcome) {
		t.Errorf("the journal says %s, the console %s", report.Outcome(), a.end.Outcome)
	}
	if _, holder := w.marker(t); holder != nil {
		t.Errorf("the lock outlives the run: %v", holder)
	}
	return a
}

func (a applied) want(t *testing.T, outcome event.Outcome, changed bool, done string) {
	t.Helper()
	if a.end.Outcome != outcome || a.end.Changed != changed || strings.Join(a.end.Done, " ") != done {
		t.Fatalf("want %s, changed %v, done %q; got %s, changed %v, done %q: %v",
			outcome, changed, done, a.end.Outcome, a.end.Changed, strings.Join(a.end.Done, " "), a.err)
	}
	if event.OutcomeOf(a.err) != outcome {
		t.Errorf("the error is of another kind than the end: %v", a.err)
	}
}

func facts(e event.Event) []string {
	var names []string
	for _, f := range slices.Concat(e.Requires, e.Provides) {
		names = append(names, f.Name+" "+string(f.State))
	}
	return names
}
