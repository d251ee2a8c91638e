package main

import (
	"github.com/spf13/cobra"

	"runbook/internal/fault"
)

func (a *app) undo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo RUN-ID",
		Short: "show what would put back what a run changed; with --run, do it",
		Args:  wants("the id of a run", 1, 1),
		RunE: func(*cobra.Command, []string) error {
			return fault.BadUsage("undo.none", "no step can be undone yet")
		},
	}
	return cmd
}
