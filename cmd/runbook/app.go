package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"runtime/debug"

	"github.com/spf13/cobra"

	"runbook/internal/console"
	"runbook/internal/event"
)

// app is one invocation of the program.
type app struct {
	in       io.Reader
	out, err console.Terminal
	mask     *console.Redactor
	args     []string
}

func (a *app) main() int {
	root := a.root()
	root.SetArgs(a.args)
	err := root.ExecuteContext(context.Background())
	if _, already := errors.AsType[shown](err); err != nil && !already {
		a.problem(err)
	}
	a.flush()
	return exitCode(err)
}

// guard turns a panic into an exit code; what it says is masked like all output.
func (a *app) guard(main func() int) (code int) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(a.err.W, "error: a bug in runbook: %v\n%s", p, debug.Stack())
			a.flush()
			code = exitCode(fmt.Errorf("panic: %v", p))
		}
	}()
	return main()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "runbook",
		Short: "apply plans of typed steps to a stopped milvus",
		Long: `runbook applies plans of typed steps to a stopped milvus.

A plan says which instance it is about and which steps to take, in order.
validate checks it without any connection, apply shows what it would do, and
apply --run does it: between live checks, under a lock, with a journal. Whatever
interrupts a run, applying the same plan again finishes what is left.`,
		Example: `  runbook validate plans/cold-switch.yaml
  runbook apply plans/cold-switch.yaml          # reads only
  runbook apply plans/cold-switch.yaml --run`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetOut(a.out.W)
	root.SetErr(a.err.W)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.validate(), a.inspect(), a.apply(), a.runs(), a.undo(), a.schema(), a.steps(), a.version())
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "help about any command", RunE: func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 && cmd == root {
			return unknownCommand(root, args[0])
		}
		return cmd.Help()
	}})
	return root
}

// shown marks an error that the console has rendered already.
type shown struct{ error }

func (s shown) Unwrap() error { return s.error }

func (a *app) problem(err error) { _, _ = io.WriteString(a.err.W, a.err.Problem(event.ErrorOf(err))) }

func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out.W, format, args...) }

// flush writes what the masking writers hold back.
func (a *app) flush() {
	for _, t := range []console.Terminal{a.out, a.err} {
		if m, ok := t.W.(*console.MaskingWriter); ok {
			_ = m.Flush()
		}
	}
}

// who names the person at the keyboard, also behind sudo.
func who() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return name
}
