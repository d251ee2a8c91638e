package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runbook/internal/event"
	"runbook/internal/plan"
	"runbook/steps"
)

func (a *app) validate() *cobra.Command {
	var flags planFlags
	var out output
	cmd := &cobra.Command{
		Use:   "validate PLAN...",
		Short: "check plans completely, without any connection",
		Long: `validate checks plans completely, without any connection: the YAML, the schema,
every expression and its type, and whether each step finds the facts it needs.
It shows every problem at once, each with its place and what to do.`,
		Args: wants("at least one plan", 1, -1), ValidArgsFunction: planFiles,
		RunE: func(_ *cobra.Command, args []string) error { return a.validatePlans(args, flags, out) },
	}
	flags.register(cmd)
	outputFlag(cmd, &out)
	return cmd
}

func (a *app) validatePlans(paths []string, flags planFlags, out output) error {
	found := []*plan.Diagnostic{} // prints as [] when there are none
	var invalid []error
	for _, path := range paths {
		p, err := plan.Load(path, steps.Language(), flags.Options)
		if err != nil {
			invalid = append(invalid, err)
			found = append(found, plan.Diagnostics(err)...)
			if out == textOutput {
				a.diagnostics(err)
			}
			continue
		}
		found = append(found, p.Warnings...)
		if out == textOutput {
			a.warnings(p)
			a.printf("%s: valid: plan %s, steps %s\n", path, p.Name, strings.Join(stepIDs(p), ", "))
		}
	}
	if out == jsonOutput {
		data, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return err
		}
		a.printf("%s\n", data)
	}
	if len(invalid) > 0 {
		return shown{errors.Join(invalid...)}
	}
	return nil
}

// invalid reports, for a command that emits events, that its plan is not valid.
func (a *app) invalid(err error, out output) error {
	if out == textOutput {
		a.diagnostics(err)
		return shown{err}
	}
	events, done := a.console(out, a.err)
	defer done()
	for _, d := range plan.Diagnostics(err) {
		e := &event.Error{Code: d.Code, Where: d.Where(), Message: d.Message}
		if d.Hint != "" {
			e.Hints = []string{d.Hint}
		}
		events.Emit(event.Event{V: event.Version, Time: time.Now().UTC(), Event: event.Diagnosed, Error: e})
	}
	return endBefore(events, err)
}

// diagnostics shows what is wrong with a plan, each problem where it is.
func (a *app) diagnostics(err error) {
	all := plan.Diagnostics(err)
	if len(all) == 0 {
		a.problem(err)
	}
	for _, d := range all {
		fmt.Fprint(a.err.W, a.err.Diagnostic(d.Where(), string(d.Severity), d.Message, d.Code, d.Hint))
	}
}

func (a *app) warnings(p *plan.Plan) {
	for _, d := range p.Warnings {
		fmt.Fprint(a.err.W, a.err.Diagnostic(d.Where(), string(d.Severity), d.Message, d.Code, d.Hint))
	}
}

func stepIDs(p *plan.Plan) []string {
	ids := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		ids[i] = s.ID
	}
	return ids
}
