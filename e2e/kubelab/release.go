package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed objects
var objects embed.FS

// release is one look-alike of an installed Milvus.
type release struct {
	Release, Fullname, Namespace string
	Standalone                   bool
	MQ                           string // mq.type as installed
	Bucket, RootPath             string
	AccessKey, SecretKey         string
	Components                   []component
	Autoscaled                   []string // components with a HorizontalPodAutoscaler
	Unlabeled                    []string // Deployments of Milvus without its labels
}

// component is one of Milvus's processes.
type component struct {
	Name     string // as a label
	Custom   string // as a field of the Milvus resource
	Replicas int
	Port     int
}

// clusterComponents are those of a cluster-mode release, with the replicas that
// tests expect to find again after a stop and a start.
func clusterComponents() []component {
	return []component{
		{"mixcoord", "mixCoord", 1, 53100},
		{"proxy", "proxy", 2, 19530},
		{"querynode", "queryNode", 2, 21123},
		{"datanode", "dataNode", 1, 21124},
		{"streamingnode", "streamingNode", 2, 22222},
	}
}

func standaloneComponents() []component { return []component{{"standalone", "standalone", 1, 19530}} }

// fullName is the chart's: the release's name, with "-milvus" unless it says so already.
func fullName(release string) string {
	if strings.Contains(release, "milvus") {
		return release
	}
	return release + "-milvus"
}

// install creates the objects of a layout.
func (r release) install(ctx context.Context, c *clients, layout string) error {
	files := []string{"dependencies.yaml", "chart.yaml"}
	if layout == "operator" {
		files[1] = "operator.yaml"
	}
	_, err := c.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, file := range files {
		if err := apply(ctx, c, r.Namespace, file, r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// kinds maps what the objects are to where the API server keeps them.
var kinds = map[string]schema.GroupVersionResource{
	"ConfigMap":                {Version: "v1", Resource: "configmaps"},
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"Service":                  {Version: "v1", Resource: "services"},
	"Deployment":               {Group: "apps", Version: "v1", Resource: "deployments"},
	"StatefulSet":              {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"HorizontalPodAutoscaler":  {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"Milvus":                   milvusResource,
}

var milvusResource = schema.GroupVersionResource{Group: "milvus.io", Version: "v1beta1", Resource: "milvuses"}

// apply renders a file of objects and creates them, or puts them in the place of
// those that exist.
func apply(ctx context.Context, c *clients, namespace, file string, data any) error {
	text, err := objects.ReadFile("objects/" + file)
	if err != nil {
		return err
	}
	parsed, err := template.New(file).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return err
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, data); err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(&rendered, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := applyOne(ctx, c, namespace, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

func applyOne(ctx context.Context, c *clients, namespace string, object *unstructured.Unstructured) error {
	where, ok := kinds[object.GetKind()]
	if !ok {
		return fmt.Errorf("unknown kind")
	}
	options := metav1.ApplyOptions{FieldManager: "helm", Force: true}
	if object.GetKind() == "CustomResourceDefinition" {
		_, err := c.dynamic.Resource(where).Apply(ctx, object.GetName(), object, options)
		return err
	}
	_, err := c.dynamic.Resource(where).Namespace(namespace).Apply(ctx, object.GetName(), object, options)
	return err
}
