package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/state"
)

func (a *app) valuesCommand() *cobra.Command {
	var target seed.Target
	cmd := &cobra.Command{
		Use: "values", Short: "print a values file for runbook's plans", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := a.running()
			if err != nil {
				return err
			}
			printValues(cmd.OutOrStdout(), lab, target.Instance)
			return nil
		},
	}
	addInstanceFlags(cmd.Flags(), &target)
	return cmd
}

func printValues(w io.Writer, lab *state.Lab, i layout.Instance) {
	list := func(name string, items []string) {
		fmt.Fprintf(w, "%s:\n", name)
		for _, item := range items {
			fmt.Fprintf(w, "  - %q\n", item)
		}
	}
	list("etcdEndpoints", lab.Etcd.Endpoints)
	fmt.Fprintf(w, "rootPath: %q\nmetaPrefix: %q\n", i.Root, i.MetaPrefix)
	fmt.Fprintf(w, "objectEndpoint: %q\nbucket: %q\nobjectRoot: %q\n", lab.Objects.Endpoint, i.Bucket, i.ObjectRoot)
	list("nodeSeeds", lab.NodeSeeds())
}

func (a *app) envCommand() *cobra.Command {
	var reader bool
	cmd := &cobra.Command{
		Use: "env", Short: "print shell exports of the credentials", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := a.running()
			if err != nil {
				return err
			}
			objects, etcd := lab.Objects.Writer, lab.Etcd.Writer
			if reader {
				objects, etcd = lab.Objects.Reader, lab.Etcd.Reader
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "export MINIO_ACCESS_KEY=%s\nexport MINIO_SECRET_KEY=%s\n", objects.Name, objects.Secret)
			if etcd != nil {
				fmt.Fprintf(w, "export ETCD_USERNAME=%s\nexport ETCD_PASSWORD=%s\n", etcd.Name, etcd.Secret)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&reader, "reader", false, "credentials that may only read")
	return cmd
}
