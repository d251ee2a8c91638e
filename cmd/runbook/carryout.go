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
	"runbook/internal/runner"
	"runbook/steps"
)

// runFlags are the flags of a command that previews, and does with --run.
type runFlags struct {
	run, yes bool
	out      output
	stateDir string
}

func (f *runFlags) register(cmd *cobra.Command) {
	outputFlag(cmd, &f.out)
	cmd.Flags().BoolVar(&f.run, "run", false, "do it, and not only show it")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --run: do not ask")
	stateDirFlag(cmd, &f.stateDir)
}

func stateDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "state-dir", "", "where journals are kept (default $XDG_STATE_HOME/runbook, else ~/.local/state/runbook)")
	_ = cmd.MarkFlagDirname("state-dir")
}

// job is what such a command is about.
type job struct {
	instance *instance.Instance
	prepare  func(runner.Config) (*runner.Runner, error)
	record   journal.Record // who, where and when are filled in
	plan     []byte         // secrets masked
	params   map[string]any
}

// runInputs is what the journal keeps of a run's inputs: secrets as references.
type runInputs struct {
	Params   map[string]any    `json:"params"`
	Instance instance.Settings `json:"instance"`
}

// carryOut previews a job and, with --run, does it.
func (a *app) carryOut(parent context.Context, f runFlags, j job) error {
	ctx := interrupt.New(parent)
	out, closeConsole := a.console(f.out, a.err)
	defer closeConsole()
	defer a.signals(ctx, out)()
	r, err := j.prepare(runner.Config{Types: steps.All(), Instance: j.instance, Console: out})
	if err != nil {
		return endBefore(out, err)
	}
	preview, err := r.Preview(ctx.Soft(), !f.run)
	if err != nil {
		return endBefore(out, err)
	}
	if !f.run {
		end(out, nil, "nothing was written; to do it: "+a.again("--run"))
		return nil
	}
	if err := a.mayRun(ctx.Soft(), j, preview, f); err != nil {
		return endBefore(out, err)
	}
	j.record.Steps = r.Steps()
	run, err := a.startJournal(j, f.stateDir)
	if err != nil {
		return endBefore(out, err)
	}
	defer run.Close()
	err = r.Run(ctx, preview, run)
	a.writeReports(run, out)
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
func endBefore(out runner.Console, err error) error {
	end(out, err, "nothing was changed")
	return shown{err}
}

func end(out runner.Console, err error, text string) {
	out.Emit(event.Event{V: event.Version, Time: time.Now().UTC(), Event: event.Ended, Text: text,
		End: &event.End{Outcome: event.OutcomeOf(err), ExitCode: exitCode(err), Error: event.ErrorOf(err)}})
}

func (a *app) startJournal(j job, stateDir string) (*journal.Run, error) {
	store, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	record := j.record
	record.Instance, record.Version, record.Started = runner.InstanceName(j.instance.Settings), version, time.Now()
	record.Who, record.Host, record.PID = who(), hostname(), os.Getpid()
	return store.Create(record, journal.Contents{Plan: j.plan, Mask: a.mask.Mask,
		Inputs: runInputs{Params: j.params, Instance: j.instance.Settings}})
}
