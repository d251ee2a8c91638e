package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Which objects are Milvus, by labels, image and mounts as they are met in clusters.
func TestWhatBelongsToARelease(t *testing.T) {
	type object struct {
		labels    map[string]string
		image     string
		configMap string
	}
	chart := func(component string) map[string]string {
		return map[string]string{nameLabel: "milvus", instanceLabel: "r", chartComponentLabel: component}
	}
	tests := []struct {
		name     string
		object   object
		selector string
		want     string // component; empty: not Milvus
	}{
		{name: "a component of the chart", object: object{labels: chart("querynode")}, want: "querynode"},
		{name: "cdc reads the WAL", object: object{labels: chart("cdc")}, want: "cdc"},
		{name: "a coordinator of 2.5", object: object{labels: chart("indexcoord")}, want: "indexcoord"},
		{
			name: "a component of the operator", want: "proxy",
			object: object{labels: map[string]string{nameLabel: "milvus", instanceLabel: "r", componentLabel: "proxy", managedByLabel: operatorName}},
		},
		{
			name:   "woodpecker carries milvus's name and mounts its ConfigMap",
			object: object{labels: chart("woodpecker"), image: "milvusdb/woodpecker:v1", configMap: "r-milvus"},
		},
		{name: "attu is harmless", object: object{labels: chart("attu"), image: "zilliz/attu:v2"}},
		{
			name:   "the proxy of pulsar is not milvus's",
			object: object{labels: map[string]string{oldNameLabel: "pulsar", oldReleaseLabel: "r", instanceLabel: "r", chartComponentLabel: "proxy"}},
		},
		{name: "another release in the namespace", object: object{labels: map[string]string{nameLabel: "milvus", instanceLabel: "other", chartComponentLabel: "proxy"}, image: "milvusdb/milvus:v2"}},
		{name: "no labels, the milvus image", object: object{image: "registry.example:5000/mirror/milvus@sha256:00"}, want: "milvus"},
		{name: "no labels, the release's ConfigMap", object: object{image: "own/build:1", configMap: "r-milvus"}, want: "milvus"},
		{name: "no labels, woodpecker's image and the release's ConfigMap", object: object{image: "own/woodpecker:1", configMap: "r-milvus"}},
		{name: "an image that only begins like milvus", object: object{image: "milvusdb/milvus-backup:v1"}},
		{name: "the operator itself", object: object{labels: map[string]string{nameLabel: operatorName}, image: "milvusdb/milvus-operator:v1"}},
		{name: "a selector replaces the usual labels", selector: "team=x", object: object{labels: map[string]string{"team": "x"}}, want: "milvus"},
		{name: "a selector does not take in dependencies", selector: instanceLabel + "=r", object: object{labels: map[string]string{instanceLabel: "r", nameLabel: "etcd"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Release{Name: "r", Selector: test.selector}.matcher()
			if err != nil {
				t.Fatal(err)
			}
			pod := corev1.PodSpec{Containers: []corev1.Container{{Image: test.object.image}}}
			if test.object.configMap != "" {
				pod.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: test.object.configMap},
				}}}}
			}
			found, ok := m.component(test.object.labels, pod)
			if ok != (test.want != "") || found.component != test.want {
				t.Errorf("component is %q (%v), want %q", found.component, ok, test.want)
			}
		})
	}
}
