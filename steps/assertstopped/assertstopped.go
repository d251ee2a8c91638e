// Package assertstopped is the step that proves a cold operation may begin:
// nothing of this Milvus runs, and everything that must stay up is up.
package assertstopped

import (
	"context"
	"fmt"
	"strings"
	"time"

	"runbook/internal/plan"
	"runbook/internal/step"
)

// Inputs of assertStopped.
type Inputs struct {
	Settle          time.Duration `json:"settle" doc:"how long to wait for the session leases of a stopped Milvus to run out" default:"40s"`
	HealthAddresses []string      `json:"healthAddresses" doc:"host:port of Milvus processes that must no longer listen (proxy 19530, metrics 9091, ...)"`
	RequireAllNodes bool          `json:"requireAllNodes" doc:"refuse when a log-store node that metadata, membership or seeds name does not answer" default:"true"`
}

// Outputs of assertStopped.
type Outputs struct {
	Waited     string   `json:"waited" doc:"time spent waiting for sessions to end"`
	Checked    []string `json:"checked" doc:"what was looked at to say that Milvus is stopped"`
	NotChecked []string `json:"notChecked" doc:"what was not looked at, and why"`
	Up         []string `json:"up" doc:"what must stay up, and was found up"`
}

// Summary lists what the statement "stopped" rests on.
func (o Outputs) Summary() []step.Line {
	lines := []step.Line{
		{Subject: "milvus", Value: "stopped", Detail: o.Checked},
		{Subject: "up", Value: strings.Join(o.Up, ", ")},
	}
	if len(o.NotChecked) > 0 {
		lines = append(lines, step.Line{Subject: "not checked", Value: strings.Join(o.NotChecked, "; ")})
	}
	return lines
}

// Type describes the step to the plan language and the runner.
func Type() step.Type {
	return step.Define(step.Spec[Inputs, Outputs]{
		Name:     "assertStopped",
		Summary:  "prove that milvus is stopped, and that etcd, object store and log-store nodes are up",
		Provides: []step.Provision[Inputs]{{Fact: plan.MilvusStopped, Check: checkStopped}},
		Preview:  preview,
		Run:      run,
	})
}

func preview(ctx context.Context, env *step.Env, in Inputs) (step.Preview, error) {
	out, err := look(ctx, env, in)
	if err != nil {
		return step.Preview{}, err
	}
	return step.Preview{Lines: out.Summary(), Outputs: out}, nil
}

func run(ctx context.Context, env *step.Env, in Inputs) (Outputs, error) {
	out, err := look(ctx, env, in)
	if err != nil {
		return Outputs{}, err
	}
	// Only here: a dry run must not send a delete, not even of an object that does not exist.
	if err := deleteAllowed(ctx, env.Instance); err != nil {
		return Outputs{}, err
	}
	return out, nil
}

// look gathers everything that can be found out by reading.
func look(ctx context.Context, env *step.Env, in Inputs) (Outputs, error) {
	if err := etcdHealthy(ctx, env.Instance); err != nil {
		return Outputs{}, err
	}
	if err := instanceExists(ctx, env.Instance); err != nil {
		return Outputs{}, err
	}
	waited, err := waitForSessions(ctx, env, in.Settle)
	if err != nil {
		return Outputs{}, err
	}
	if err := nothingListens(ctx, in.HealthAddresses); err != nil {
		return Outputs{}, err
	}
	out := Outputs{Waited: waited.Round(time.Second).String()}
	out.Checked = append(out.Checked, fmt.Sprintf("no session under %s/session/ in etcd", env.Instance.Settings.MetaRoot()))
	if n := len(in.HealthAddresses); n > 0 {
		out.Checked = append(out.Checked, fmt.Sprintf("%d health addresses refuse connections", n))
	} else {
		out.NotChecked = append(out.NotChecked, "milvus processes themselves: a process that lost its lease shows no session (set healthAddresses)")
	}
	err = dependenciesUp(ctx, env, in, &out)
	return out, err
}
