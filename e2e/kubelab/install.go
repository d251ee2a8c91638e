package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const readyTimeout = 60 * time.Second

func installCommand(l *lab) *cobra.Command {
	var (
		r             = release{AccessKey: "minioadmin", SecretKey: "minioadmin"}
		layout        string
		etcd, s3      string
		nodes, counts []string
		wait          bool
	)
	command := &cobra.Command{
		Use:   "install",
		Short: "install the look-alike of a Milvus release and wait until its pods are ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			r.Namespace = l.namespace
			if err := r.fill(layout, counts); err != nil {
				return err
			}
			if err := mapServers(cmd.Context(), c, r, etcd, s3, nodes); err != nil {
				return err
			}
			if err := r.install(cmd.Context(), c, layout); err != nil || !wait {
				return err
			}
			return waitReady(cmd.Context(), c, l.namespace, readyTimeout)
		},
	}
	flags := command.Flags()
	flags.StringVar(&layout, "layout", "chart-cluster", "chart-cluster, chart-standalone, operator or operator-standalone")
	flags.StringVar(&r.Release, "release", "my-release", "name of the release")
	flags.StringVar(&r.MQ, "mq", "pulsar", "mq.type that it is installed with")
	flags.StringVar(&r.Bucket, "bucket", "a-bucket", "minio.bucketName")
	flags.StringVar(&r.RootPath, "root-path", "files", "minio.rootPath")
	flags.StringVar(&r.AccessKey, "access-key", r.AccessKey, "access key of the object store")
	flags.StringVar(&r.SecretKey, "secret-key", r.SecretKey, "secret key of the object store")
	flags.StringArrayVar(&counts, "replicas", nil, "COMPONENT=N")
	flags.StringArrayVar(&r.Autoscaled, "autoscale", nil, "component to give a HorizontalPodAutoscaler")
	flags.StringArrayVar(&r.Unlabeled, "unlabeled", nil, "name of a Deployment of Milvus without its labels")
	flags.StringVar(&etcd, "etcd", "", "host:port of the server that the etcd pod stands for")
	flags.StringVar(&s3, "s3", "", "host:port of the server that the MinIO pod stands for")
	flags.StringArrayVar(&nodes, "node", nil, "host:port of the server that the next woodpecker pod stands for")
	flags.BoolVar(&wait, "wait", true, "wait until every pod is ready")
	return command
}

func (r *release) fill(layout string, counts []string) error {
	layout, r.Standalone = strings.CutSuffix(layout, "-standalone")
	if !slices.Contains([]string{"chart", "chart-cluster", "operator"}, layout) {
		return fmt.Errorf("unknown layout %q", layout)
	}
	r.Fullname = fullName(r.Release)
	r.Components = clusterComponents()
	if r.Standalone {
		r.Components = standaloneComponents()
	}
	for _, count := range counts {
		name, text, _ := strings.Cut(count, "=")
		n, err := strconv.Atoi(text)
		i := slices.IndexFunc(r.Components, func(c component) bool { return c.Name == name })
		if err != nil || i < 0 {
			return fmt.Errorf("--replicas %s: want COMPONENT=N", count)
		}
		r.Components[i].Replicas = n
	}
	return nil
}

// mapServers makes the ports of the release's dependencies lead to real servers.
func mapServers(ctx context.Context, c *clients, r release, etcd, s3 string, nodes []string) error {
	var more rules
	if etcd != "" {
		more = append(more, rule{Namespace: r.Namespace, Pod: r.Release + "-etcd-", Forward: map[string]string{"2379": etcd}})
	}
	if s3 != "" {
		more = append(more, rule{Namespace: r.Namespace, Pod: r.Release + "-minio-", Forward: map[string]string{"9000": s3}})
	}
	for i, node := range nodes {
		for _, prefix := range []string{r.Fullname, r.Release} { // chart, operator
			more = append(more, rule{Namespace: r.Namespace, Pod: fmt.Sprintf("%s-woodpecker-%d", prefix, i), Forward: map[string]string{"18080": node}})
		}
	}
	return changeRules(ctx, c, func(all rules) rules { return append(all, more...) })
}

// waitReady waits until every workload of the namespace has all its replicas.
func waitReady(ctx context.Context, c *clients, namespace string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		workloads, err := listWorkloads(ctx, c, namespace)
		if err != nil {
			return err
		}
		lagging := slices.DeleteFunc(workloads, func(w workload) bool { return w.observed && w.ready == w.desired })
		if len(workloads) > 0 && len(lagging) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %v", timeout, lagging)
		case <-ticker.C:
		}
	}
}
