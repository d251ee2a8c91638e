package kube

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"runbook/internal/fault"
)

// Layout is who made a release's objects, and so how it is stopped.
type Layout string

const (
	// LayoutAuto lets the objects tell.
	LayoutAuto Layout = "auto"
	// LayoutChart is the Helm chart: one stops it by scaling its workloads.
	LayoutChart Layout = "chart"
	// LayoutOperator is milvus-operator: it undoes what is done to the workloads,
	// so one patches the Milvus custom resource.
	LayoutOperator Layout = "operator"
)

// Release names one Milvus in the client's namespace.
type Release struct {
	Name     string // Helm release, or name of the Milvus custom resource
	Selector string // label selector of Milvus's workloads and pods, instead of the usual labels
	Layout   Layout // empty: LayoutAuto
}

// Labels that the chart (milvus-helm 5.0) and milvus-operator (1.3) set. The chart
// writes the component in a plain "component", the operator in componentLabel.
const (
	nameLabel           = "app.kubernetes.io/name"
	instanceLabel       = "app.kubernetes.io/instance"
	componentLabel      = "app.kubernetes.io/component"
	chartComponentLabel = "component"
	managedByLabel      = "app.kubernetes.io/managed-by"
	operatorName        = "milvus-operator"
	oldReleaseLabel     = "release" // set by older charts, MinIO's among them
	oldNameLabel        = "app"
)

// components are the processes that read or write Milvus's metadata or its WAL.
// cdc reads the WAL; the coordinators of 2.5 and earlier may still be about.
var components = []string{
	"standalone", "mixcoord", "rootcoord", "datacoord", "querycoord", "indexcoord", "streamingcoord",
	"proxy", "querynode", "datanode", "indexnode", "streamingnode", "cdc",
}

// dependencies are what a release brings along besides Milvus, by the value of a
// name or component label. Those of support must stay up while Milvus is stopped.
var (
	support      = []string{"woodpecker", "etcd", "minio"}
	dependencies = append([]string{"pulsar", "pulsarv3", "kafka", "zookeeper", "bookkeeper", "attu"}, support...)
)

// configDir is where Milvus's image reads its configuration.
const configDir = "/milvus/configs"

// fullName is the chart's prefix of object names, and the name of its ConfigMap.
func (r Release) fullName() string {
	if r.Name == "" || strings.Contains(r.Name, "milvus") {
		return r.Name
	}
	return r.Name + "-milvus"
}

// matcher decides what belongs to a release.
type matcher struct {
	release  Release
	selector labels.Selector // nil: the usual labels
}

func (r Release) matcher() (matcher, error) {
	m := matcher{release: r}
	if r.Name == "" && r.Selector == "" {
		return m, fault.BadUsage("kube.no-release", "neither release nor selector is given").
			Hint("set instance.kubernetes.release: kubectl get deployments --show-labels names it in %s", instanceLabel)
	}
	if r.Selector == "" {
		return m, nil
	}
	selector, err := labels.Parse(r.Selector)
	if err != nil {
		return m, fault.BadUsage("kube.selector", "the label selector cannot be read").At(r.Selector).Because(err).
			Hint("write it as kubectl -l takes it: app.kubernetes.io/instance=my-release")
	}
	m.selector = selector
	return m, nil
}

// match is what a matcher found: the component, and for an object without the
// labels of the release why it counts all the same.
type match struct {
	component string
	unlabeled string
}

// component tells whether an object with these labels and this pod template is
// part of the release's Milvus. Woodpecker's own service is not, although the
// chart gives it Milvus's name and instance labels and mounts Milvus's ConfigMap.
func (m matcher) component(object map[string]string, pod corev1.PodSpec) (match, bool) {
	if dependency(object) != "" || (runsImage(pod, "woodpecker") && !runsImage(pod, "milvus")) {
		return match{}, false
	}
	component := componentOf(object)
	if m.labelled(object) {
		return match{component: orElse(component, "milvus")}, true
	}
	switch {
	case m.release.Name != "" && mountsConfigMap(pod, m.release.fullName(), m.release.Name):
		return match{component: orElse(component, "milvus"), unlabeled: "it mounts the release's ConfigMap"}, true
	case runsImage(pod, "milvus") && object[instanceLabel] == "":
		return match{component: orElse(component, "milvus"), unlabeled: "it runs a milvus image and no label says of which release"}, true
	}
	return match{}, false
}

func (m matcher) labelled(object map[string]string) bool {
	if m.selector != nil {
		return m.selector.Matches(labels.Set(object))
	}
	return object[instanceLabel] == m.release.Name && slices.Contains(components, componentOf(object))
}

// support names the dependency that must stay up, when the object is one of the release's.
func (m matcher) support(object map[string]string) (string, bool) {
	if m.release.Name == "" || (object[instanceLabel] != m.release.Name && object[oldReleaseLabel] != m.release.Name) {
		return "", false
	}
	name := dependency(object)
	return name, slices.Contains(support, name)
}

// dependency names what an object is when it is not Milvus itself.
func dependency(object map[string]string) string {
	for _, label := range []string{chartComponentLabel, componentLabel, nameLabel, oldNameLabel} {
		if slices.Contains(dependencies, object[label]) {
			return object[label]
		}
	}
	return ""
}

func componentOf(object map[string]string) string {
	return orElse(object[chartComponentLabel], object[componentLabel])
}

// runsImage reports whether a container's image is NAME, whatever its registry,
// tag or digest: "milvusdb/milvus:v2.6.7" is milvus, "milvusdb/woodpecker" is not.
func runsImage(pod corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		base, _, _ := strings.Cut(path.Base(c.Image), "@")
		base, _, _ = strings.Cut(base, ":")
		return base == name
	})
}

func mountsConfigMap(pod corev1.PodSpec, names ...string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.ConfigMap != nil && slices.Contains(names, v.ConfigMap.Name)
	})
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
