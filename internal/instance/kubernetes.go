package instance

import (
	"context"
	"net"
	"sync"

	"runbook/internal/fault"
	"runbook/internal/kube"
	"runbook/internal/secret"
)

// kubernetes is the client of the cluster, made when first used.
type kubernetes struct {
	mu     sync.Mutex
	client *kube.Client
}

// Kube returns the client of the cluster that the release runs in. Asking for it
// without instance.kubernetes is a refusal.
func (i *Instance) Kube() (*kube.Client, error) {
	s := i.Settings.Kubernetes
	if s == nil {
		return nil, fault.Refuse("instance.no-kubernetes", "the plan does not say which Kubernetes release this milvus is").
			Hint("add instance.kubernetes: {namespace: ..., release: ...}")
	}
	i.kubernetes.mu.Lock()
	defer i.kubernetes.mu.Unlock()
	if i.kubernetes.client != nil {
		return i.kubernetes.client, nil
	}
	var err error
	i.kubernetes.client, err = kube.Open(kube.Config{Namespace: s.Namespace, Kubeconfig: s.Kubeconfig, Context: s.Context})
	return i.kubernetes.client, err
}

// Release names the Milvus release in the cluster.
func (i *Instance) Release() kube.Release {
	s := i.Settings.Kubernetes
	if s == nil {
		return kube.Release{}
	}
	return kube.Release{Name: s.Release, Selector: s.Selector, Layout: kube.Layout(s.Layout)}
}

// dialFunc connects to host:port.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// tunnel is how to connect when addresses are those that pods use; nil when they
// can be reached from here.
func (i *Instance) tunnel() (dialFunc, error) {
	if s := i.Settings.Kubernetes; s == nil || !s.PortForward {
		return nil, nil
	}
	client, err := i.Kube()
	if err != nil {
		return nil, err
	}
	return client.DialContext, nil
}

// resolver reads secretKeyRef: from the one given, else from the release's namespace.
func (i *Instance) resolver() (secret.Resolver, error) {
	if i.secrets != nil || i.Settings.Kubernetes == nil {
		return i.secrets, nil
	}
	return i.Kube()
}
