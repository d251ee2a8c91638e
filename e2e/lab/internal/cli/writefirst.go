package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/seed"
)

func (a *app) writeFirstCommand() *cobra.Command {
	var target seed.Target
	cmd := &cobra.Command{
		Use: "write-first", Short: "write and read one entry through a new woodpecker client, as Milvus does when it starts", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := a.running()
			if err != nil {
				return err
			}
			s, err := seed.New(cmd.Context(), lab, target, say(cmd))
			if err != nil {
				return err
			}
			defer s.Close()
			first, err := s.WriteFirst(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "log %s has id %d (the counter was %d): wrote and read back %q\n", first.Name, first.ID, first.CounterBefore, first.Entry)
			return nil
		},
	}
	addInstanceFlags(cmd.Flags(), &target)
	return cmd
}
