package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/milvus"
)

// Commands that stop and start one server of a running lab.

func nodeArg(arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil {
		return 0, usagef("node %q: want a number from 1 to 3", arg)
	}
	return n, nil
}

func (a *app) stopNodeCommand() *cobra.Command {
	var hole bool
	cmd := &cobra.Command{
		Use: "stop-node N", Short: "stop a log-store node", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nodeArg(args[0])
			if err != nil {
				return err
			}
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := c.StopNode(cmd.Context(), n, hole); err != nil {
				return err
			}
			what := "down"
			if hole {
				what = "a black hole"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %d is %s\n", n, what)
			return nil
		},
	}
	cmd.Flags().BoolVar(&hole, "black-hole", false, "accept connections at its address and never answer")
	return cmd
}

func (a *app) startNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "start-node N", Short: "start a log-store node and wait until it is a member again", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nodeArg(args[0])
			if err != nil {
				return err
			}
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := c.StartNode(cmd.Context(), n); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %d is up\n", n)
			return nil
		},
	}
}

// etcdSwitch is stop-etcd or start-etcd.
func (a *app) etcdSwitch(use, short, done string, do func(*control.Client, *cobra.Command, int) error) *cobra.Command {
	var member int
	cmd := &cobra.Command{
		Use: use, Short: short, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := do(c, cmd, member); err != nil {
				return err
			}
			what := "etcd"
			if member != 0 {
				what = fmt.Sprintf("etcd member %d", member)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", what, done)
			return nil
		},
	}
	cmd.Flags().IntVar(&member, "member", 0, "only this member, from 1")
	return cmd
}

func (a *app) stopEtcdCommand() *cobra.Command {
	return a.etcdSwitch("stop-etcd", "stop etcd, or one member of it", "down", func(c *control.Client, cmd *cobra.Command, member int) error {
		return c.StopEtcd(cmd.Context(), member)
	})
}

func (a *app) startEtcdCommand() *cobra.Command {
	return a.etcdSwitch("start-etcd", "start etcd, or one member of it", "up", func(c *control.Client, cmd *cobra.Command, member int) error {
		return c.StartEtcd(cmd.Context(), member)
	})
}

func (a *app) stopObjectsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop-objects", Short: "stop the object store", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := c.StopObjects(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the object store is down")
			return nil
		},
	}
}

func (a *app) startObjectsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "start-objects", Short: "start the object store", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := c.StartObjects(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the object store is up")
			return nil
		},
	}
}

func (a *app) sessionStartCommand() *cobra.Command {
	var s control.Session
	cmd := &cobra.Command{
		Use: "session-start ROLE[-ID]", Short: "register a Milvus session and keep it alive", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := a.running()
			if err != nil {
				return err
			}
			return startSession(cmd, lab, args[0], s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Root, "root", layout.Default().Root, "Milvus's etcd.rootPath")
	f.DurationVar(&s.TTL, "ttl", 30*time.Second, "lease time")
	f.BoolVar(&s.NoLease, "no-lease", false, "a key without a lease")
	return cmd
}

func (a *app) sessionStopCommand() *cobra.Command {
	var s control.Session
	cmd := &cobra.Command{
		Use: "session-stop ROLE[-ID]", Short: "end a Milvus session at once", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			role, id, err := milvus.SplitSessionName(args[0])
			if err != nil {
				return usageError{err}
			}
			s.Role, s.ID = role, id
			c, err := a.control()
			if err != nil {
				return err
			}
			if err := c.StopSession(cmd.Context(), s); err != nil {
				return err
			}
			how := "ended"
			if s.Abandon {
				how = "left to its lease"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "session %s %s\n", milvus.SessionKey(s.Root, role, id), how)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Root, "root", layout.Default().Root, "Milvus's etcd.rootPath")
	f.BoolVar(&s.Abandon, "abandon", false, "stop keeping it alive but leave the key to its lease, as a crash does")
	return cmd
}
