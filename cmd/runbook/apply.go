package main

import (
	"context"

	"github.com/spf13/cobra"

	"runbook/internal/journal"
	"runbook/internal/runner"
)

// applyFlags are the flags of apply.
type applyFlags struct {
	planFlags
	runFlags
}

func (a *app) apply() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "show what a plan would do; with --run, do it",
		Long: `apply shows what a plan would do, found by reading only. With --run it then does
it, step by step: facts are verified live before and after each step, every write
to etcd compares that milvus is stopped and that this run still holds the lock,
and a journal is kept. On a terminal --run asks first, unless --yes is given.

Whatever stops a run (Ctrl-C, a crash, a node that is down), applying the same
plan again finishes what is left. The first Ctrl-C ends the run after the unit of
work under way, the second at once.

exit codes: 0 done, or dry run complete; 1 a step failed; 2 wrong command line or
invalid plan; 3 refused, nothing changed; 4 another run holds the lock;
130 interrupted`,
		Args: wants("one plan", 1, 1), ValidArgsFunction: planFiles,
		RunE: func(cmd *cobra.Command, args []string) error { return a.applyPlan(cmd.Context(), args[0], f) },
	}
	f.planFlags.register(cmd)
	f.runFlags.register(cmd)
	return cmd
}

func (a *app) applyPlan(parent context.Context, path string, f applyFlags) error {
	p, i, err := a.open(path, f.planFlags)
	if err != nil {
		return a.invalid(err, f.out)
	}
	defer i.Close()
	return a.carryOut(parent, f.runFlags, job{
		instance: i,
		prepare: func(c runner.Config) (*runner.Runner, error) {
			c.Plan = p
			return runner.New(c)
		},
		record: journal.Record{Kind: journal.Apply, Plan: p.Name, PlanPath: p.Path},
		plan:   p.Redacted(),
		params: p.Params,
	})
}
