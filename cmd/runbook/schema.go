package main

import (
	"github.com/spf13/cobra"

	"runbook/internal/plan"
	"runbook/steps"
)

func (a *app) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print the JSON schema of plans",
		Long:  "schema prints the JSON schema (draft 2020-12) of plans, for editors and for other programs.",
		Args:  wants("no argument", 0, 0),
		RunE: func(*cobra.Command, []string) error {
			schema, err := plan.Schema(steps.Language())
			if err == nil {
				_, err = a.out.W.Write(schema)
			}
			return err
		},
	}
}
