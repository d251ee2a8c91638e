package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/seed"
)

func (a *app) standInStartCommand() *cobra.Command {
	var target seed.Target
	var stall []string
	cmd := &cobra.Command{
		Use: "stand-in-start", Short: "start a stand-in for Milvus's streaming node: it does with the WAL what Milvus does at its start", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			health, err := c.StartStandIn(cmd.Context(), control.StandIn{Instance: target.Instance, Stall: stall})
			if err != nil {
				return fmt.Errorf("the stand-in ended at its start: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "a stand-in for milvus runs for %s, health at http://%s/healthz\n", target.Root, health)
			return nil
		},
	}
	addInstanceFlags(cmd.Flags(), &target)
	cmd.Flags().StringSliceVar(&stall, "stall", nil, "physical channels whose checkpoint never moves")
	return cmd
}

func (a *app) standInStopCommand() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use: "stand-in-stop", Short: "stop the stand-in for Milvus, gracefully", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			return c.StopStandIn(cmd.Context(), root)
		},
	}
	cmd.Flags().StringVar(&root, "root", layout.Default().Root, "Milvus's etcd.rootPath")
	return cmd
}
