// Package kube asks a Kubernetes API server about one Milvus release: what of it
// still runs, stopping and starting it, its configuration, and connections to
// its pods. It knows workloads and pods; of etcd's content it knows nothing, and
// what to do with an answer is its callers' business.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// requestTimeout bounds one request, connecting included.
	requestTimeout = 10 * time.Second
	// pollInterval is how often a wait looks again.
	pollInterval = 500 * time.Millisecond
	// pageSize is how many objects one list request asks for.
	pageSize = 500
)

// Config says which cluster and namespace. Empty fields fall back as kubectl's do:
// the kubeconfig of $KUBECONFIG or ~/.kube/config and its current context; inside
// a pod without one, the pod's service account and namespace.
type Config struct {
	Namespace  string
	Kubeconfig string // path
	Context    string
}

// Client talks to one namespace. Its methods are safe for concurrent use and
// bounded in time; errors are *fault.Error.
type Client struct {
	namespace string
	context   string // of the kubeconfig; empty inside a pod
	config    *rest.Config
	rest      rest.Interface
}

// Open reads the kubeconfig; the API server is not contacted yet.
func Open(c Config) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, unusableConfig(c, err)
	}
	namespace := c.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, unusableConfig(c, err)
		}
	}
	// A field that cannot be read leaves the name empty; it is only shown.
	raw, _ := loader.RawConfig()
	contextName := c.Context
	if contextName == "" {
		contextName = raw.CurrentContext
	}
	return newClient(config, namespace, contextName)
}

func newClient(config *rest.Config, namespace, contextName string) (*Client, error) {
	config = rest.CopyConfig(config)
	// Milvus's Kubernetes types are plain JSON to us; only the API server's
	// error statuses are decoded through a scheme.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "runbook"
	config.QPS, config.Burst = 50, 100
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, unusableConfig(Config{Context: contextName}, err)
	}
	return &Client{namespace: namespace, context: contextName, config: config, rest: client}, nil
}

// Namespace is where the release lives.
func (c *Client) Namespace() string { return c.namespace }

// String names the cluster the way an operator knows it.
func (c *Client) String() string {
	if c.context == "" {
		return fmt.Sprintf("namespace %s at %s", c.namespace, c.config.Host)
	}
	return fmt.Sprintf("namespace %s of context %s", c.namespace, c.context)
}

// resource is one kind of object: the group's path and the plural name.
type resource struct{ base, plural string }

var (
	deployments  = resource{"/apis/apps/v1", "deployments"}
	statefulSets = resource{"/apis/apps/v1", "statefulsets"}
	pods         = resource{"/api/v1", "pods"}
	services     = resource{"/api/v1", "services"}
	configMaps   = resource{"/api/v1", "configmaps"}
	secrets      = resource{"/api/v1", "secrets"}
	autoscalers  = resource{"/apis/autoscaling/v2", "horizontalpodautoscalers"}
	milvuses     = resource{"/apis/milvus.io/v1beta1", "milvuses"}
)

// path is the object's URL path in the client's namespace.
func (c *Client) path(r resource, name ...string) string {
	parts := append([]string{r.base, "namespaces", c.namespace, r.plural}, name...)
	return strings.Join(parts, "/")
}

// get reads one object.
func (c *Client) get(ctx context.Context, r resource, name string, into any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	data, err := c.rest.Get().AbsPath(c.path(r, name)).Do(ctx).Raw()
	if err != nil {
		return c.explain(err, "get", r, name)
	}
	return decode(data, into)
}

// patch merges fields into an object, or into one of its subresources.
func (c *Client) patch(ctx context.Context, r resource, name, subresource string, fields any) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	request := c.rest.Patch(types.MergePatchType).AbsPath(c.path(r, name)).Body(body)
	if subresource != "" {
		request = c.rest.Patch(types.MergePatchType).AbsPath(c.path(r, name, subresource)).Body(body)
		r.plural += "/" + subresource
	}
	if _, err := request.Do(ctx).Raw(); err != nil {
		return c.explain(err, "patch", r, name)
	}
	return nil
}

// list reads all objects of a kind, page by page. T is the object's type.
func list[T any](ctx context.Context, c *Client, r resource, query url.Values) ([]T, error) {
	var all []T
	for next := ""; ; {
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []T             `json:"items"`
		}
		if err := c.listPage(ctx, r, query, next, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

func (c *Client) listPage(ctx context.Context, r resource, query url.Values, next string, into any) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	request := c.rest.Get().AbsPath(c.path(r)).Param("limit", fmt.Sprint(pageSize))
	if next != "" {
		request = request.Param("continue", next)
	}
	for name, values := range query {
		request = request.Param(name, values[0])
	}
	data, err := request.Do(ctx).Raw()
	if err != nil {
		return c.explain(err, "list", r, "")
	}
	return decode(data, into)
}

// bounded gives one request its deadline, and a silent logger: the library would
// write to standard error what comes back as an error all the same.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(klog.NewContext(ctx, klog.New(nil)), requestTimeout)
}

func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode the API server's answer: %w", err)
	}
	return nil
}
