package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/snapshot"
	"runbook/e2e/lab/internal/survey"
)

func (a *app) snapshotCommand() *cobra.Command {
	return &cobra.Command{
		Use: "snapshot FILE", Short: "record every key, object and file", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := a.running()
			if err != nil {
				return err
			}
			s, err := snapshot.Take(cmd.Context(), lab)
			if err != nil {
				return err
			}
			if err := s.Write(args[0]); err != nil {
				return err
			}
			objects := 0
			for _, bucket := range s.Objects {
				objects += len(bucket)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d keys at revision %d, %d objects, %d files\n", len(s.Etcd), s.EtcdRevision, objects, len(s.Files))
			return nil
		},
	}
}

func (a *app) diffCommand() *cobra.Command {
	var ignore []string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "compare two snapshots; exit 1 when they differ",
		Long: "Print what was added, removed and changed between two snapshots, by names such as\n" +
			"etcd/KEY, objects/BUCKET/KEY, nodes/N/PATH and etcd-revision.",
		Args: usageArgs(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "leave out names that match this `GLOB` (* is any characters); repeatable")
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		before, err := snapshot.Read(args[0])
		if err != nil {
			return err
		}
		after, err := snapshot.Read(args[1])
		if err != nil {
			return err
		}
		changes := snapshot.Diff(before, after, ignore)
		err = show(cmd, *output, changes, func(w io.Writer) {
			for _, c := range changes {
				fmt.Fprintf(w, "%s %s\n", c.What, c.Name)
				if c.What == "changed" {
					fmt.Fprintf(w, "  before: %s\n  after:  %s\n", c.Before, c.After)
				}
			}
		})
		if err == nil && len(changes) > 0 {
			err = errFound{}
		}
		return err
	}
	return cmd
}

func (a *app) nodeFilesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "nodefiles", Short: "list the files on the nodes' disks", Args: usageArgs(cobra.NoArgs),
	}
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		lab, err := a.running()
		if err != nil {
			return err
		}
		type file struct {
			Disk string `json:"disk"`
			Path string `json:"path"`
			Size int64  `json:"size"`
		}
		files := []file{}
		disks := snapshot.Disks(lab)
		for _, name := range sortedKeys(disks) {
			if err := survey.EachFile(disks[name], func(path string, size int64) error {
				files = append(files, file{name, path, size})
				return nil
			}); err != nil {
				return err
			}
		}
		return show(cmd, *output, files, func(w io.Writer) {
			for _, f := range files {
				fmt.Fprintf(w, "%s\t%d\t%s\n", f.Disk, f.Size, f.Path)
			}
		})
	}
	return cmd
}
