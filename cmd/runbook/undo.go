package main

import (
	"context"

	"github.com/spf13/cobra"

	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/journal"
	"runbook/internal/runner"
	"runbook/internal/secret"
)

func (a *app) undo() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "undo RUN-ID",
		Short: "show what would put back what a run changed; with --run, do it",
		Long: `undo puts back what a run changed, from the before-images in its journal. Without
--run it only shows what that would be. What was changed since by somebody else is
left alone, and what a step deleted stays deleted: see the run's report. When
several runs changed an instance, undo the newest first.

A part of the run's id is enough; "last" is the newest run.`,
		Args:              wants("the id of a run, or `last`", 1, 1),
		ValidArgsFunction: runIDs(&f.stateDir),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.undoRun(cmd.Context(), args[0], f) },
	}
	f.register(cmd)
	return cmd
}

func (a *app) undoRun(parent context.Context, id string, f runFlags) error {
	past, err := findRun(f.stateDir, id)
	if err != nil {
		return err
	}
	i, inputs, err := a.instanceOf(past)
	if err != nil {
		return err
	}
	defer i.Close()
	source, err := past.Plan()
	if err != nil {
		return err
	}
	return a.carryOut(parent, f, job{
		instance: i,
		prepare:  func(c runner.Config) (*runner.Runner, error) { return runner.NewUndo(c, past) },
		record:   journal.Record{Kind: journal.Undo, Plan: "undo of " + past.Record.ID, PlanPath: past.Dir, Undoes: past.Record.ID},
		plan:     source,
		params:   inputs.Params,
	})
}

// instanceOf describes the instance of a past run, from its journal.
func (a *app) instanceOf(past *journal.Past) (*instance.Instance, runInputs, error) {
	var inputs runInputs
	if err := past.Inputs(&inputs); err != nil {
		return nil, inputs, err
	}
	for _, v := range secrets(inputs.Instance) {
		if v.Literal == secret.Mask {
			return nil, inputs, fault.Refuse("undo.secret", "the plan held a secret in clear, which the journal does not keep").At(past.Dir).
				Hint("write where it comes from into instance of %s/inputs.json: {\"valueFrom\": {\"env\": \"NAME\"}}", past.Dir)
		}
	}
	return a.reach(inputs.Instance), inputs, nil
}
