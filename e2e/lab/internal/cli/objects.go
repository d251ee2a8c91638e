package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/snapshot"
)

// objectsApp adds the bucket that all the objects commands work on.
type objectsApp struct {
	*app
	bucket string
	as     *string
}

func (a *app) objectsCommand() *cobra.Command {
	o := &objectsApp{app: a}
	cmd := &cobra.Command{Use: "objects", Short: "look at objects and change them", Args: usageArgs(cobra.NoArgs), RunE: help}
	cmd.PersistentFlags().StringVar(&o.bucket, "bucket", layout.Default().Bucket, "bucket")
	o.as = addAs(cmd.PersistentFlags())
	cmd.AddCommand(o.makeBucket(), o.list(), o.put(), o.remove(), o.hold(true), o.hold(false), o.denyDelete(), o.allow())
	return cmd
}

func (o *objectsApp) open() (*minio.Client, error) {
	lab, err := o.running()
	if err != nil {
		return nil, err
	}
	who, err := choose(*o.as, lab.Objects.Admin, lab.Objects.Writer, lab.Objects.Reader)
	if err != nil {
		return nil, err
	}
	return access.ObjectsAs(lab, who)
}

func (o *objectsApp) seeder(cmd *cobra.Command) (*seed.Seeder, error) {
	lab, err := o.running()
	if err != nil {
		return nil, err
	}
	target := seed.Target{Instance: layout.Default(), StorageType: seed.StorageService}
	target.Bucket = o.bucket
	return seed.New(cmd.Context(), lab, target, say(cmd))
}

func (o *objectsApp) makeBucket() *cobra.Command {
	var lock bool
	cmd := &cobra.Command{
		Use: "mb", Short: "make the bucket, as seed does", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.seeder(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.EnsureBucket(cmd.Context(), lock)
		},
	}
	cmd.Flags().BoolVar(&lock, "bucket-lock", false, "with object lock")
	return cmd
}

func (o *objectsApp) list() *cobra.Command {
	var versions bool
	cmd := &cobra.Command{
		Use: "ls [PREFIX]", Short: "list objects: size and key", Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	cmd.Flags().BoolVar(&versions, "versions", false, "every version and delete marker")
	output := addOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := o.open()
		if err != nil {
			return err
		}
		objects := []snapshot.Object{}
		opts := minio.ListObjectsOptions{Prefix: strings.Join(args, ""), Recursive: true, WithVersions: versions}
		for object := range client.ListObjects(cmd.Context(), o.bucket, opts) {
			if object.Err != nil {
				return object.Err
			}
			objects = append(objects, snapshot.FromInfo(object))
		}
		return show(cmd, *output, objects, func(w io.Writer) {
			for _, object := range objects {
				fmt.Fprintf(w, "%d\t%s", object.Size, object.Key)
				if versions {
					fmt.Fprintf(w, "\t%s\t%s", object.VersionID, object.Kind())
				}
				fmt.Fprintln(w)
			}
		})
	}
	return cmd
}

func (o *objectsApp) put() *cobra.Command {
	var data string
	var size int
	cmd := &cobra.Command{
		Use: "put KEY", Short: "write an object", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.open()
			if err != nil {
				return err
			}
			if size > 0 {
				data = strings.Repeat("x", size)
			}
			_, err = client.PutObject(cmd.Context(), o.bucket, args[0], strings.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "content")
	cmd.Flags().IntVar(&size, "size", 0, "content of this many bytes instead")
	return cmd
}

func (o *objectsApp) remove() *cobra.Command {
	var versions bool
	cmd := &cobra.Command{
		Use: "rm KEY|PREFIX/", Short: "remove an object, or all below a prefix", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.open()
			if err != nil {
				return err
			}
			if !strings.HasSuffix(args[0], "/") && !versions {
				return client.RemoveObject(cmd.Context(), o.bucket, args[0], minio.RemoveObjectOptions{})
			}
			removed := 0
			for object := range client.ListObjects(cmd.Context(), o.bucket, minio.ListObjectsOptions{Prefix: args[0], Recursive: true, WithVersions: versions}) {
				if object.Err != nil {
					return object.Err
				}
				if err := client.RemoveObject(cmd.Context(), o.bucket, object.Key, minio.RemoveObjectOptions{VersionID: object.VersionID}); err != nil {
					return fmt.Errorf("%s: %w", object.Key, err)
				}
				removed++
			}
			fmt.Fprintln(cmd.OutOrStdout(), removed)
			return nil
		},
	}
	cmd.Flags().BoolVar(&versions, "versions", false, "every version and delete marker")
	return cmd
}

// hold is hold or release.
func (o *objectsApp) hold(on bool) *cobra.Command {
	use, short, status := "release KEY", "end an object's legal hold", minio.LegalHoldDisabled
	if on {
		use, short, status = "hold KEY", "put an object under legal hold: nobody can delete it (needs seed --bucket-lock)", minio.LegalHoldEnabled
	}
	return &cobra.Command{
		Use: use, Short: short, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.open()
			if err != nil {
				return err
			}
			return client.PutObjectLegalHold(cmd.Context(), o.bucket, args[0], minio.PutObjectLegalHoldOptions{Status: &status})
		},
	}
}

func (o *objectsApp) denyDelete() *cobra.Command {
	return &cobra.Command{
		Use: "deny-delete PREFIX", Short: "forbid, by bucket policy, the credentials of env to delete below PREFIX", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.policy(cmd, args[0]) },
	}
}

func (o *objectsApp) allow() *cobra.Command {
	return &cobra.Command{
		Use: "allow", Short: "end deny-delete", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.policy(cmd, "") },
	}
}

func (o *objectsApp) policy(cmd *cobra.Command, denied string) error {
	s, err := o.seeder(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.DenyDelete(cmd.Context(), denied)
}
