package instance

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/kubetest"
	"runbook/internal/labtest"
	"runbook/internal/secret"
)

// From a laptop: nothing is given but the release. Every tier is reached by the
// addresses that pods use, through the API server.
func TestEverythingIsReachedThroughTheCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lab, cluster := labtest.Start(t), kubetest.Start(t)
	lab.Run(t, "seed", "--logs", "2")
	const namespace, release = "far-away", "my-release"
	install := []string{"install", "--release", release, "--etcd", lab.Etcd.Endpoints[0], "--s3", lab.Objects.Endpoint,
		"--access-key", lab.Objects.Admin.Name, "--secret-key", lab.Objects.Admin.Secret}
	for _, node := range lab.Nodes {
		install = append(install, "--node", node.Endpoint)
	}
	cluster.Run(t, namespace, install...)

	settings := Settings{
		Etcd:         Etcd{MetaSubPath: "meta"},
		Kubernetes:   &Kubernetes{Namespace: namespace, Release: release, Kubeconfig: cluster.Kubeconfig, PortForward: true},
		MilvusConfig: &MilvusConfig{ConfigMap: true},
	}
	settings.SetGiven([]string{"kubernetes", "milvusConfig"})
	i := New(settings, nil)
	t.Cleanup(func() { i.Close() })
	if err := i.Configure(ctx); err != nil {
		t.Fatal(err)
	}
	if got := i.Settings.Etcd.Endpoints[0]; got != "my-release-etcd:2379" {
		t.Errorf("etcd is at %s, want it by the name that pods use", got)
	}
	etcd, err := i.Etcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := etcd.Get(ctx, "by-dev/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || keys.Count == 0 {
		t.Errorf("etcd through the tunnel: %v keys, %v", keys, err)
	}
	objects, err := i.Objects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for entry, err := range objects.List(ctx, "files/wp/", false) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.HasPrefix(entry.Key, "files/wp/")
	}
	if !found {
		t.Error("no object through the tunnel")
	}
	node, err := i.Node("my-release-milvus-woodpecker-1.my-release-milvus-woodpecker-headless." + namespace + ".svc.cluster.local:18080")
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Ping(ctx); err != nil {
		t.Errorf("a log-store node through the tunnel: %v", err)
	}
	key, err := i.Secret(ctx, secret.Value{ValueFrom: &secret.Source{SecretKeyRef: &secret.KeyRef{Name: "my-release-minio", Key: "secretkey"}}})
	if err != nil || key != lab.Objects.Admin.Secret {
		t.Errorf("the secret by reference: %v", err)
	}
	cluster.Run(t, namespace, "delete-pod", "my-release-etcd-0")
	if _, err := etcd.Get(ctx, "by-dev/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
		t.Errorf("after etcd's pod was replaced the client has not found it again: %v", err)
	}
}
