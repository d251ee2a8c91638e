package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/servers"
	"runbook/e2e/lab/internal/state"
)

// app is what all commands share.
type app struct{ dir string }

func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:           "runbook-lab",
		Short:         "the outside world of runbook, real, on 127.0.0.1",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.dir, "dir", "", "directory of the lab (default $"+state.EnvDir+", else below the user's state directory)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		a.upCommand(), a.seedCommand(), a.statusCommand(), a.verifyCommand(), a.verifyPositionsCommand(), a.downCommand(),
		a.valuesCommand(), a.envCommand(), a.writeFirstCommand(),
		a.standInStartCommand(), a.standInStopCommand(),
		a.stopNodeCommand(), a.startNodeCommand(), a.faultNodeCommand(), a.rpcCountsCommand(),
		a.stopEtcdCommand(), a.startEtcdCommand(), a.stopObjectsCommand(), a.startObjectsCommand(),
		a.sessionStartCommand(), a.sessionStopCommand(),
		a.snapshotCommand(), a.diffCommand(), a.etcdCommand(), a.objectsCommand(), a.nodeFilesCommand(),
		serveObjectsCommand(),
	)
	return root
}

// usageArgs makes a wrong number of arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if cmd.HasParent() {
				err = fmt.Errorf("%s: %w", cmd.Name(), err)
			}
			return usageError{err}
		}
		return nil
	}
}

// labDir is where the lab is or shall be.
func (a *app) labDir() (string, error) {
	if a.dir != "" {
		return absolute(a.dir)
	}
	return state.DefaultDir()
}

// running loads the lab and makes sure that it runs.
func (a *app) running() (*state.Lab, error) {
	dir, err := a.labDir()
	if err != nil {
		return nil, err
	}
	lab, err := state.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: runbook-lab up --detach starts one", err)
	}
	alive, err := state.Running(dir)
	if err != nil {
		return nil, err
	}
	if !alive {
		return nil, fmt.Errorf("the lab in %s does not run\nhint: runbook-lab up --detach starts it", dir)
	}
	return lab, nil
}

func (a *app) control() (*control.Client, error) {
	lab, err := a.running()
	if err != nil {
		return nil, err
	}
	return control.NewClient(lab.Control), nil
}

// addInstanceFlags adds the flags that address an instance.
func addInstanceFlags(f *pflag.FlagSet, t *seed.Target) {
	t.Instance = layout.Default()
	f.StringVar(&t.Root, "root", t.Root, "Milvus's etcd.rootPath")
	f.StringVar(&t.MetaPrefix, "meta-prefix", t.MetaPrefix, "woodpecker's metadata prefix: a name below the root, or /name at the top")
	f.StringVar(&t.Bucket, "bucket", t.Bucket, "bucket of the object store")
	f.StringVar(&t.ObjectRoot, "object-root", t.ObjectRoot, "Milvus's minio.rootPath, verbatim; woodpecker's root is this plus /wp")
	f.StringVar(&t.StorageType, "storage-type", seed.StorageService, "woodpecker's storage type: service, minio or local")
	f.StringVar(&t.LocalPath, "local-path", "", "disk of storage type local (default local/ in the lab's directory)")
	f.BoolFunc("legacy", "metadata at the top-level prefix woodpecker: the same as --meta-prefix /woodpecker", func(string) error {
		t.MetaPrefix = "/" + layout.LegacyPrefix
		return nil
	})
}

// Whose rights the raw commands use.
const (
	asAdmin  = "admin"
	asWriter = "writer"
	asReader = "reader"
)

// addAs adds --as.
func addAs(f *pflag.FlagSet) *string {
	return f.String("as", asAdmin, "whose rights to use: admin, writer (the credentials of env) or reader (of env --reader)")
}

// choose returns the credential that --as names.
func choose[C any](as string, admin, writer, reader C) (C, error) {
	switch as {
	case asAdmin:
		return admin, nil
	case asWriter:
		return writer, nil
	case asReader:
		return reader, nil
	default:
		return admin, usagef("--as %q: want %s, %s or %s", as, asAdmin, asWriter, asReader)
	}
}

// addOutput adds -o.
func addOutput(f *pflag.FlagSet) *string {
	return f.StringP("output", "o", "text", "text or json")
}

// show prints v as JSON, or calls text with an aligning writer.
func show(cmd *cobra.Command, output string, v any, text func(io.Writer)) error {
	switch output {
	case "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "text":
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		text(w)
		return w.Flush()
	default:
		return usagef("output %q: want text or json", output)
	}
}

// say prints progress.
func say(cmd *cobra.Command) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintln(cmd.ErrOrStderr(), strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func serveObjectsCommand() *cobra.Command {
	return &cobra.Command{
		Use: servers.ObjectsCommand, Hidden: true, Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return servers.ServeObjects(cmd.Context(), cmd.InOrStdin())
		},
	}
}
