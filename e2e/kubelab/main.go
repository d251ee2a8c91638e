// Command runbook-kubelab is a Kubernetes cluster for tests, on 127.0.0.1: the
// real kube-apiserver, kube-controller-manager and etcd, and in place of a
// scheduler and nodes one program that binds pods, reports them running, ends them
// when they are deleted and forwards their ports. No container runs.
//
// On it, look-alikes of a Milvus release can be installed: objects with the
// names, labels and configuration keys that milvus-helm and milvus-operator give
// theirs, written for these tests.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	if len(os.Args) > 1 {
		for _, p := range programs {
			if os.Args[1] == p.name {
				p.main(os.Args[2:])
				return
			}
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "runbook-kubelab:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "runbook-kubelab",
		Short:         "a Kubernetes cluster for tests, on 127.0.0.1",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var l lab
	flags := root.PersistentFlags()
	flags.StringVar(&l.dir, "dir", os.Getenv("RUNBOOK_KUBELAB_DIR"), "folder of the cluster (or RUNBOOK_KUBELAB_DIR)")
	flags.StringVar(&l.namespace, "namespace", defaultNamespace, "namespace of the release")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if l.dir == "" {
			return fmt.Errorf("--dir is not given")
		}
		return nil
	}
	root.AddCommand(upCommand(&l), downCommand(&l), installCommand(&l), statusCommand(&l), podsCommand(&l),
		knobCommand(&l), userCommand(&l), apiCommand(&l), deletePodCommand(&l), scaleCommand(&l))
	return root
}

// lab is what every command is about: one cluster and one namespace of it.
type lab struct{ dir, namespace string }

// defaultNamespace is also the one of the kubeconfigs that the lab writes.
const defaultNamespace = "milvus"

func (l *lab) clients() (*clients, error) { return newClients(l.dir) }
