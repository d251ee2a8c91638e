package kube_test

import (
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigFor is a kubeconfig that leads to a server without any credentials.
func kubeconfigFor(l *lab, server string) string {
	l.Helper()
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server}
	config.Contexts["c"] = &api.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(l.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		l.Fatal(err)
	}
	return path
}
