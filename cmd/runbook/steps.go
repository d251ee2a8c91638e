package main

import (
	"strings"

	"github.com/spf13/cobra"

	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/plan"
	"runbook/internal/step"
	"runbook/steps"
)

func (a *app) steps() *cobra.Command {
	return &cobra.Command{
		Use:   "steps [NAME]",
		Short: "list the step types, or describe one",
		Long:  "steps lists the step types; with a name it shows the inputs, outputs and facts of that one.",
		Args:  wants("at most one step type", 0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return stepNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listSteps()
			}
			for _, t := range steps.All() {
				if t.Name == args[0] {
					return a.describeStep(t)
				}
			}
			return unknownStep(args[0])
		},
	}
}

func stepNames() []string {
	var names []string
	for _, t := range steps.All() {
		names = append(names, t.Name)
	}
	return names
}

func unknownStep(name string) error {
	e := fault.BadUsage("usage.step", "no step type %q", name)
	if near := nearest(name, stepNames()); near != "" {
		return e.Hint("did you mean `runbook steps %s`?", near)
	}
	return e.Hint("see `runbook steps` for all of them")
}

func (a *app) listSteps() error {
	var rows []event.Line
	for _, t := range steps.All() {
		rows = append(rows, event.Line{Subject: t.Name, Value: t.Summary})
	}
	a.printf("%s", a.out.Rows(rows))
	return nil
}

func (a *app) describeStep(t step.Type) error {
	rows := []event.Line{{Subject: "step type", Value: t.Name}, {Subject: "does", Value: t.Summary}}
	for _, r := range t.Requires {
		rows = append(rows, event.Line{Subject: "needs", Value: requirement(r)})
	}
	for _, f := range t.Provides {
		rows = append(rows, event.Line{Subject: "gives", Value: string(f)})
	}
	if t.Destructive {
		rows = append(rows, event.Line{Subject: "destroys", Value: "yes: the instance is marked as half done until its facts are verified"})
	}
	a.printf("%s", a.out.Rows(rows))
	a.printf("\ninputs (with:)\n%s", a.out.Rows(fieldRows("", plan.Fields(t.Inputs))))
	a.printf("\noutputs (${steps.ID.outputs...})\n%s", a.out.Rows(fieldRows("", plan.Fields(t.Outputs))))
	return nil
}

func requirement(r plan.Requirement) string {
	if r.When == "" {
		return string(r.Fact)
	}
	return string(r.Fact) + ", when " + r.When
}

// fieldRows describes fields, those of objects below them with a dotted name.
func fieldRows(prefix string, fields []plan.Field) []event.Line {
	var rows []event.Line
	for _, f := range fields {
		value := f.Type
		if f.Required {
			value += ", required"
		}
		if f.Default != "" {
			value += ", default " + f.Default
		}
		if len(f.Enum) > 0 {
			value += ", one of " + strings.Join(f.Enum, ", ")
		}
		if f.Doc != "" {
			value += ": " + f.Doc
		}
		rows = append(rows, event.Line{Subject: "  " + prefix + f.Name, Value: value})
		rows = append(rows, fieldRows(prefix+f.Name+".", f.Fields)...)
	}
	if len(fields) == 0 && prefix == "" {
		rows = append(rows, event.Line{Subject: "  none"})
	}
	return rows
}
