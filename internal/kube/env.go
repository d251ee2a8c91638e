package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"runbook/internal/secret"
)

// Variable is one environment variable of Milvus's container.
type Variable struct {
	Name   string
	Value  string
	Secret bool   // it comes from a Kubernetes secret: never show it
	From   string // "pod template", "secret my-minio/accesskey", "configmap x/y", "service link"
}

// MilvusEnv is the environment that the release's pods would get, as far as the
// pod template and the namespace's services say. notes names what could not be read.
func (c *Client) MilvusEnv(ctx context.Context, s *State) (vars []Variable, notes []string, err error) {
	container, pod, ok := s.milvusContainer()
	if !ok {
		return nil, nil, nil
	}
	links, note, err := c.serviceLinks(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	vars, notes = links, appendNote(notes, note)
	for _, source := range container.EnvFrom {
		more, note, err := c.envFrom(ctx, source)
		if err != nil {
			return nil, nil, err
		}
		vars, notes = append(vars, more...), appendNote(notes, note)
	}
	for _, e := range container.Env {
		v, note, err := c.variable(ctx, e)
		if err != nil {
			return nil, nil, err
		}
		if note == "" {
			vars = append(vars, v)
		}
		notes = appendNote(notes, note)
	}
	return vars, notes, nil
}

// milvusContainer is the container whose settings decide about the WAL: a
// streaming node's or a standalone's, else that of any Milvus workload.
func (s *State) milvusContainer() (corev1.Container, corev1.PodSpec, bool) {
	ordered := slices.Clone(s.Workloads)
	rank := map[string]int{"streamingnode": -2, "standalone": -1}
	slices.SortStableFunc(ordered, func(a, b Workload) int { return rank[a.Component] - rank[b.Component] })
	for _, w := range ordered {
		for _, container := range w.template.Spec.Containers {
			if len(w.template.Spec.Containers) == 1 || runsImage(corev1.PodSpec{Containers: []corev1.Container{container}}, "milvus") {
				return container, w.template.Spec, true
			}
		}
	}
	return corev1.Container{}, corev1.PodSpec{}, false
}

// serviceLinks are the variables that Kubernetes sets in every pod for each
// service of the namespace: MINIO_PORT=tcp://10.0.0.7:9000 for one called minio.
func (c *Client) serviceLinks(ctx context.Context, pod corev1.PodSpec) ([]Variable, string, error) {
	if pod.EnableServiceLinks != nil && !*pod.EnableServiceLinks {
		return nil, "", nil
	}
	all, err := list[corev1.Service](ctx, c, services, nil)
	if apierrors.IsForbidden(err) {
		return nil, "service links in the pods' environment: not allowed to list services", nil
	}
	if err != nil {
		return nil, "", err
	}
	var vars []Variable
	for _, s := range all {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		port := s.Spec.Ports[0]
		prefix := strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
		value := fmt.Sprintf("%s://%s:%d", strings.ToLower(string(port.Protocol)), s.Spec.ClusterIP, port.Port)
		vars = append(vars, Variable{Name: prefix + "_PORT", Value: value, From: "service link"})
	}
	return vars, "", nil
}

func (c *Client) envFrom(ctx context.Context, source corev1.EnvFromSource) (vars []Variable, note string, err error) {
	add := func(from string, hidden bool, key, value string) {
		vars = append(vars, Variable{Name: source.Prefix + key, Value: value, Secret: hidden, From: from + "/" + key})
	}
	switch {
	case source.SecretRef != nil:
		var s corev1.Secret
		if note, err = c.optional(ctx, secrets, source.SecretRef.Name, &s); note != "" || err != nil {
			return nil, note, err
		}
		for _, key := range sortedKeys(s.Data) {
			add("secret "+s.Name, true, key, string(s.Data[key]))
		}
	case source.ConfigMapRef != nil:
		var m corev1.ConfigMap
		if note, err = c.optional(ctx, configMaps, source.ConfigMapRef.Name, &m); note != "" || err != nil {
			return nil, note, err
		}
		for _, key := range sortedKeys(m.Data) {
			add("configmap "+m.Name, false, key, m.Data[key])
		}
	}
	return vars, "", nil
}

func (c *Client) variable(ctx context.Context, e corev1.EnvVar) (v Variable, note string, err error) {
	v = Variable{Name: e.Name, Value: e.Value, From: "pod template"}
	switch from := e.ValueFrom; {
	case from == nil:
		return v, "", nil
	case from.SecretKeyRef != nil:
		var s corev1.Secret
		ref := from.SecretKeyRef
		note, err = c.optional(ctx, secrets, ref.Name, &s)
		v.Value, v.Secret, v.From = string(s.Data[ref.Key]), true, "secret "+ref.Name+"/"+ref.Key
	case from.ConfigMapKeyRef != nil:
		var m corev1.ConfigMap
		ref := from.ConfigMapKeyRef
		note, err = c.optional(ctx, configMaps, ref.Name, &m)
		v.Value, v.From = m.Data[ref.Key], "configmap "+ref.Name+"/"+ref.Key
	default:
		note = "taken from the pod itself"
	}
	if note != "" {
		note = e.Name + ": " + note
	}
	return v, note, err
}

// optional reads what the environment refers to; what is hidden or missing is
// noted, since it may not matter.
func (c *Client) optional(ctx context.Context, r resource, name string, into any) (note string, err error) {
	err = c.get(ctx, r, name, into)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("not allowed to get %s %s", r.plural, name), nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s %s not found", r.plural, name), nil
	}
	return "", err
}

func appendNote(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}

// SecretKey reads one key of a secret in the namespace: it is the resolver of
// secretKeyRef in a plan.
func (c *Client) SecretKey(ctx context.Context, ref secret.KeyRef) (string, error) {
	var s corev1.Secret
	if err := c.get(ctx, secrets, ref.Name, &s); err != nil {
		return "", err
	}
	value, ok := s.Data[ref.Key]
	if !ok {
		return "", fmt.Errorf("secret %s has no key %q, it has: %s", ref.Name, ref.Key, strings.Join(sortedKeys(s.Data), ", "))
	}
	return string(value), nil
}
