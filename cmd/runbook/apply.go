package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"runbook/internal/console"
	"runbook/internal/event"
	"runbook/internal/instance"
	"runbook/internal/interrupt"
	"runbook/internal/journal"
	"runbook/internal/plan"
	"runbook/internal/runner"
	"runbook/steps"
)

// applyFlags are the flags of apply.
type applyFlags struct {
	planFlags
	run, yes bool
	out      output
	stateDir string
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
	outputFlag(cmd, &f.out)
	cmd.Flags().BoolVar(&f.run, "run", false, "do it, and not only show it")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --run: do not ask")
	stateDirFlag(cmd, &f.stateDir)
	return cmd
}

func stateDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "state-dir", "", "where journals are kept (default $XDG_STATE_HOME/runbook, else ~/.local/state/runbook)")
	_ = cmd.MarkFlagDirname("state-dir")
}

func (a *app) applyPlan(parent context.Context, path string, f applyFlags) error {
	p, i, err := a.open(path, f.planFlags)
	if err != nil {
		a.diagnostics(err)
		return shown{err}
	}
	defer i.Close()
	ctx := interrupt.New(parent)
	out, closeConsole := a.console(f.out, a.err)
	defer closeConsole()
	defer a.signals(ctx, out)()
	r, err := runner.New(runner.Config{Plan: p, Types: steps.All(), Instance: i, Console: out})
	if err != nil {
		return err
	}
	preview, err := r.Preview(ctx.Soft(), !f.run)
	if err != nil {
		return a.endBefore(out, err)
	}
	if !f.run {
		end(out, nil, "nothing was written; to do it: "+a.again("--run"))
		return nil
	}
	if err := a.mayRun(ctx.Soft(), p, i, preview, f); err != nil {
		return a.endBefore(out, err)
	}
	j, err := a.startJournal(p, i, f.stateDir)
	if err != nil {
		return a.endBefore(out, err)
	}
	defer j.Close()
	err = r.Run(ctx, preview, j)
	a.writeReports(j, out)
	if err != nil {
		return shown{err}
	}
	return nil
}

// console is how a command talks, and how to end that. aside gets what is no result.
func (a *app) console(o output, aside console.Terminal) (runner.Console, func()) {
	if o == jsonOutput {
		c := console.NewJSON(a.out)
		return c, c.Close
	}
	c := console.NewText(a.out, aside)
	return c, c.Close
}

// endBefore reports an end before anything could have been changed.
func (a *app) endBefore(out runner.Console, err error) error {
	end(out, err, "nothing was changed")
	return shown{err}
}

func end(out runner.Console, err error, text string) {
	out.Emit(event.Event{V: event.Version, Time: time.Now().UTC(), Event: event.Ended, Text: text,
		End: &event.End{Outcome: event.OutcomeOf(err), ExitCode: exitCode(err), Error: event.ErrorOf(err)}})
}

func (a *app) startJournal(p *plan.Plan, i *instance.Instance, stateDir string) (*journal.Run, error) {
	store, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	record := journal.Record{
		Kind: journal.Apply, Plan: p.Name, PlanPath: p.Path, Instance: runner.InstanceName(i.Settings),
		Who: who(), Host: hostname(), PID: os.Getpid(), Version: version, Started: time.Now(),
	}
	for _, s := range p.Steps {
		record.Steps = append(record.Steps, journal.Step{ID: s.ID, Type: s.Type.Name})
	}
	return store.Create(record, journal.Contents{
		Plan: p.Redacted(), Inputs: runInputs{Params: p.Params, Instance: i.Settings}, Mask: a.mask.Mask})
}

// runInputs is what the journal keeps of a run's inputs: secrets as references.
type runInputs struct {
	Params   map[string]any    `json:"params"`
	Instance instance.Settings `json:"instance"`
}
