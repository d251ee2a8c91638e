package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/survey"
	"runbook/e2e/lab/internal/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	var target seed.Target
	var counter, least int64
	cmd := &cobra.Command{
		Use: "verify", Short: "an independent look whether an instance's WAL is empty; exit 1 if not", Args: usageArgs(cobra.NoArgs),
	}
	addInstanceFlags(cmd.Flags(), &target)
	cmd.Flags().Int64Var(&counter, "counter", 0, "what the log id counter must be")
	cmd.Flags().Int64Var(&least, "counter-min", 0, "what the log id counter must be at least")
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		lab, err := a.running()
		if err != nil {
			return err
		}
		seen, err := survey.Look(cmd.Context(), lab)
		if err != nil {
			return err
		}
		var expect verify.Expect
		if cmd.Flags().Changed("counter") {
			expect.Counter = &counter
		}
		if cmd.Flags().Changed("counter-min") {
			expect.CounterMin = &least
		}
		checks := verify.Empty(seen, target.Instance, expect)
		err = show(cmd, *output, checks, func(w io.Writer) {
			fmt.Fprintln(w, "CHECK\tEXPECTED\tSEEN\t")
			for _, c := range checks {
				verdict := "ok"
				if !c.OK {
					verdict = "WRONG"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.What, c.Expected, c.Seen, verdict)
			}
		})
		if err == nil && !verify.OK(checks) {
			err = errFound{}
		}
		return err
	}
	return cmd
}
