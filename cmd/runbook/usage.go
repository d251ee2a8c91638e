package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runbook/internal/fault"
)

// noSuchCommand is the root command's Args: whatever is left is no command.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(parent *cobra.Command, name string) error {
	e := fault.BadUsage("usage.command", "%s has no command %q", parent.CommandPath(), name)
	var names []string
	for _, c := range parent.Commands() {
		names = append(names, c.Name())
	}
	if near := nearest(name, names); near != "" {
		return e.Hint("did you mean `%s %s`?", parent.CommandPath(), near)
	}
	return e.Hint("see `%s --help` for the commands", parent.CommandPath())
}

// flagError explains an unknown or malformed flag.
func flagError(cmd *cobra.Command, err error) error {
	e := fault.BadUsage("usage.flag", "%s: %s", cmd.CommandPath(), err)
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		if near := nearest(name, flagNames(cmd)); near != "" {
			return e.Hint("did you mean --%s?", near)
		}
	}
	return e.Hint("see `%s --help` for the flags", cmd.CommandPath())
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// nearest is the name that was probably meant; empty when none is near.
func nearest(name string, names []string) string {
	best, bestDistance := "", 1+max(1, min(3, len(name)/2))
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// wants checks the number of arguments and says what they are.
func wants(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fault.BadUsage("usage.arguments", "%s needs %s", cmd.CommandPath(), what).
				Hint("write `%s`", cmd.UseLine())
		case most >= 0 && len(args) > most:
			return fault.BadUsage("usage.arguments", "%s takes %s and nothing more: %q is too much", cmd.CommandPath(), what, args[most]).
				Hint("write `%s`", cmd.UseLine())
		}
		return nil
	}
}

// output is the value of -o.
type output string

const (
	textOutput output = "text"
	jsonOutput output = "json"
)

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "text|json" }

func (o *output) Set(value string) error {
	switch output(value) {
	case textOutput, jsonOutput:
		*o = output(value)
		return nil
	default:
		return fault.BadUsage("usage.output", "want text or json, found %q", value)
	}
}

func outputFlag(cmd *cobra.Command, o *output) {
	*o = textOutput
	cmd.Flags().VarP(o, "output", "o", "text for people, json for programs")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}
