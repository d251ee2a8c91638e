package main

import (
	"github.com/spf13/cobra"
)

func (a *app) runs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "look at the journals of earlier runs",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	return cmd
}
