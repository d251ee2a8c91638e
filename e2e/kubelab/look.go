package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type workload struct {
	kind, name     string
	desired, ready int32
	observed       bool
}

func (w workload) String() string { return fmt.Sprintf("%s %d/%d", w.name, w.ready, w.desired) }

func listWorkloads(ctx context.Context, c *clients, namespace string) ([]workload, error) {
	deployments, err := c.typed.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sets, err := c.typed.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []workload
	for _, d := range deployments.Items {
		all = append(all, workload{"deployment", d.Name, *d.Spec.Replicas, d.Status.ReadyReplicas, d.Status.ObservedGeneration >= d.Generation})
	}
	for _, s := range sets.Items {
		all = append(all, workload{"statefulset", s.Name, *s.Spec.Replicas, s.Status.ReadyReplicas, s.Status.ObservedGeneration >= s.Generation})
	}
	slices.SortFunc(all, func(a, b workload) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func statusCommand(l *lab) *cobra.Command {
	var configMap, key string
	command := &cobra.Command{
		Use:   "status",
		Short: "print workloads and Milvus resources, or with --config a file of a ConfigMap",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			if configMap != "" {
				m, err := c.typed.CoreV1().ConfigMaps(l.namespace).Get(cmd.Context(), configMap, metav1.GetOptions{})
				if err != nil {
					return err
				}
				fmt.Fprint(cmd.OutOrStdout(), m.Data[key])
				return nil
			}
			return printStatus(cmd, c, l)
		},
	}
	command.Flags().StringVar(&configMap, "config", "", "name of a ConfigMap")
	command.Flags().StringVar(&key, "key", "default.yaml", "its file")
	return command
}

func printStatus(cmd *cobra.Command, c *clients, l *lab) error {
	workloads, err := listWorkloads(cmd.Context(), c, l.namespace)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	defer table.Flush()
	for _, w := range workloads {
		fmt.Fprintf(table, "%s\t%s\t%d/%d\n", w.kind, w.name, w.ready, w.desired)
	}
	resources, err := c.dynamic.Resource(milvusResource).Namespace(l.namespace).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, m := range resources.Items {
		status, _, _ := unstructured.NestedString(m.Object, "status", "status")
		stream, _, _ := unstructured.NestedString(m.Object, "spec", "dependencies", "msgStreamType")
		fmt.Fprintf(table, "milvus\t%s\t%s %s\n", m.GetName(), status, stream)
	}
	return nil
}

func podsCommand(l *lab) *cobra.Command {
	return &cobra.Command{
		Use:   "pods",
		Short: "print pods with phase, readiness, restarts and address",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			list, err := c.typed.CoreV1().Pods(l.namespace).List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			defer table.Flush()
			for _, p := range list.Items {
				state := string(p.Status.Phase)
				if p.DeletionTimestamp != nil {
					state = "Terminating"
				}
				ready, restarts := true, int32(0)
				for _, s := range p.Status.ContainerStatuses {
					ready, restarts = ready && s.Ready, restarts+s.RestartCount
				}
				fmt.Fprintf(table, "%s\t%s\tready=%v\trestarts=%d\t%s\n", p.Name, state, ready, restarts, p.Status.PodIP)
			}
			return nil
		},
	}
}
