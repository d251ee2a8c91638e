package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/proxy"
)

func (a *app) rpcCountsCommand() *cobra.Command {
	var reset bool
	cmd := &cobra.Command{
		Use: "rpc-counts", Short: "calls that each node received, by method", Args: usageArgs(cobra.NoArgs),
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "count from zero afterwards")
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.control()
		if err != nil {
			return err
		}
		counts, err := c.RPCCounts(cmd.Context(), reset)
		if err != nil {
			return err
		}
		return show(cmd, *output, counts, func(w io.Writer) {
			fmt.Fprintln(w, "NODE\tMETHOD\tCALLS")
			for _, node := range slices.Sorted(maps.Keys(counts)) {
				for _, method := range slices.Sorted(maps.Keys(counts[node])) {
					fmt.Fprintf(w, "%s\t%s\t%d\n", node, method, counts[node][method])
				}
			}
		})
	}
	return cmd
}

func (a *app) faultNodeCommand() *cobra.Command {
	var f proxy.Fault
	var mode string
	var clear bool
	cmd := &cobra.Command{
		Use: "fault-node N", Short: "make calls to a node fail", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nodeArg(args[0])
			if err != nil {
				return err
			}
			c, err := a.control()
			if err != nil {
				return err
			}
			if clear {
				if err := c.ClearFaults(cmd.Context(), n); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "node %d: no faults\n", n)
				return nil
			}
			f.Mode = proxy.Mode(mode)
			if err := f.Check(); err != nil {
				return usageError{err}
			}
			if err := c.AddFault(cmd.Context(), n, f); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %d: %s of %s\n", n, f.Mode, f.Method)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Method, "method", proxy.AnyMethod, "method, such as MarkLogDeleted; * is every one")
	fs.StringVar(&mode, "mode", string(proxy.Unavailable), "reject, stall or unavailable")
	fs.IntVar(&f.Times, "times", 0, "how many calls; 0 is all until cleared")
	fs.IntVar(&f.Skip, "skip", 0, "let this many calls through first")
	fs.BoolVar(&clear, "clear", false, "remove the node's faults")
	return cmd
}
