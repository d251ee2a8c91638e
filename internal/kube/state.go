package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"golang.org/x/sync/errgroup"

	"runbook/internal/fault"
)

// State is what the API server says of one release at one moment.
type State struct {
	Layout      Layout     // never LayoutAuto
	Workloads   []Workload // Milvus's own, by name
	Pods        []Pod      // Milvus's own, those being deleted included, by name
	Support     []Workload // woodpecker, etcd, object store, as far as the release brings them
	Autoscalers []Autoscaler
	Custom      *Custom  // the Milvus custom resource; nil in the chart layout
	Unchecked   []string // what could not be looked at, and why
}

// Workload is a Deployment or a StatefulSet.
type Workload struct {
	Kind      string // "Deployment" or "StatefulSet"
	Name      string
	Component string // Milvus's component, or what the dependency is
	Unlabeled string // why it counts although no label names the release; empty: it is labelled
	Desired   int32  // replicas asked for; an absent field means 1
	Actual    int32  // replicas that exist
	Ready     int32  // replicas that are ready
	Updated   int32  // replicas of the latest template
	Settled   bool   // its controller has seen the latest change
	Recorded  string // what Stop wrote down; empty: nothing

	template corev1.PodTemplateSpec
	selector labels.Selector // of its pods
	resource resource
}

// Pod is one pod of Milvus.
type Pod struct {
	Name        string
	UID         string
	Component   string
	Unlabeled   string
	Phase       string
	Ready       bool
	Restarts    int32 // of all containers
	Waiting     string
	Terminating *time.Time // since when it is being deleted; nil: it is not
	GraceEnds   *time.Time // when the grace period of the deletion is over
}

// Autoscaler is a HorizontalPodAutoscaler on one of the workloads. It sleeps
// while its target is at 0, unless something above it (Owner) wakes it.
type Autoscaler struct {
	Name, Target string
	Min          int32
	Owner        string // "ScaledObject name": KEDA scales from 0 by itself
}

// Look reads the state of a release. That nothing of it exists is an error: a
// release that was never there looks as stopped as one that was scaled down.
func (c *Client) Look(ctx context.Context, r Release) (*State, error) {
	m, err := r.matcher()
	if err != nil {
		return nil, err
	}
	var (
		deployed []appsv1.Deployment
		sets     []appsv1.StatefulSet
		allPods  []corev1.Pod
		scalers  []autoscalingv2.HorizontalPodAutoscaler
		custom   *Custom
		hidden   []string
	)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { deployed, err = list[appsv1.Deployment](gctx, c, deployments, nil); return err })
	group.Go(func() (err error) { sets, err = list[appsv1.StatefulSet](gctx, c, statefulSets, nil); return err })
	group.Go(func() (err error) { allPods, err = list[corev1.Pod](gctx, c, pods, nil); return err })
	group.Go(func() (err error) {
		scalers, err = list[autoscalingv2.HorizontalPodAutoscaler](gctx, c, autoscalers, nil)
		if apierrors.IsForbidden(err) {
			hidden, err = append(hidden, "autoscalers: not allowed to list them"), nil
		}
		return err
	})
	group.Go(func() (err error) { custom, err = c.custom(gctx, r); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := &State{Custom: custom, Unchecked: hidden}
	for i := range deployed {
		s.add(m, deploymentOf(&deployed[i]), deployed[i].Labels)
	}
	for i := range sets {
		s.add(m, statefulSetOf(&sets[i]), sets[i].Labels)
	}
	s.addPods(m, allPods)
	s.addAutoscalers(scalers)
	slices.SortFunc(s.Workloads, func(a, b Workload) int { return strings.Compare(a.Name, b.Name) })
	if len(s.Workloads) == 0 && len(s.Pods) == 0 && (custom == nil || custom.hidden) {
		return nil, c.noRelease(r, deployed, sets)
	}
	return s, s.decideLayout(c, r, deployed)
}

func (c *Client) noRelease(r Release, deployed []appsv1.Deployment, sets []appsv1.StatefulSet) error {
	refusal := fault.Refuse("kube.no-release", "nothing of milvus release %q is here", orElse(r.Name, r.Selector)).At(c.String())
	names := map[string]bool{}
	note := func(object map[string]string) {
		if name := object[instanceLabel]; name != "" && slices.Contains(components, componentOf(object)) {
			names[name] = true
		}
	}
	for i := range deployed {
		note(deployed[i].Labels)
	}
	for i := range sets {
		note(sets[i].Labels)
	}
	if len(names) == 0 {
		return refusal.Hint("set instance.kubernetes.namespace: this one holds no milvus at all")
	}
	return refusal.Hint("set instance.kubernetes.release: this namespace holds %s", strings.Join(sortedKeys(names), ", "))
}

func (s *State) add(m matcher, w Workload, object map[string]string) {
	// The template's labels count too: the object's own may have been left out.
	if found, ok := m.component(merged(w.template.Labels, object), w.template.Spec); ok {
		w.Component, w.Unlabeled = found.component, found.unlabeled
		s.Workloads = append(s.Workloads, w)
		return
	}
	if name, ok := m.support(merged(w.template.Labels, object)); ok {
		w.Component = name
		s.Support = append(s.Support, w)
	}
}

// addPods takes the pods that are Milvus's by their own labels or image, and
// those that a Milvus workload selects.
func (s *State) addPods(m matcher, all []corev1.Pod) {
	for i := range all {
		pod := &all[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue // ended: it runs nothing any more
		}
		found, ok := m.component(pod.Labels, pod.Spec)
		for _, w := range s.Workloads {
			if !ok && w.selector.Matches(labels.Set(pod.Labels)) {
				found, ok = match{component: w.Component, unlabeled: w.Unlabeled}, true
			}
		}
		if ok {
			s.Pods = append(s.Pods, podOf(pod, found))
		}
	}
	slices.SortFunc(s.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
}

func (s *State) addAutoscalers(all []autoscalingv2.HorizontalPodAutoscaler) {
	for _, h := range all {
		target := h.Spec.ScaleTargetRef
		if !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Kind == target.Kind && w.Name == target.Name }) {
			continue
		}
		a := Autoscaler{Name: h.Name, Target: target.Name, Min: 1}
		if h.Spec.MinReplicas != nil {
			a.Min = *h.Spec.MinReplicas
		}
		for _, owner := range h.OwnerReferences {
			if owner.Kind == "ScaledObject" {
				a.Owner = owner.Kind + " " + owner.Name
			}
		}
		s.Autoscalers = append(s.Autoscalers, a)
	}
}

// decideLayout takes the layout asked for, or the one that the objects show.
func (s *State) decideLayout(c *Client, r Release, deployed []appsv1.Deployment) error {
	managed := slices.ContainsFunc(s.Workloads, func(w Workload) bool {
		return slices.ContainsFunc(deployed, func(d appsv1.Deployment) bool {
			return d.Name == w.Name && d.Labels[managedByLabel] == operatorName
		})
	})
	switch r.Layout {
	case LayoutChart, LayoutOperator:
		s.Layout = r.Layout
	default:
		s.Layout = LayoutChart
		if managed || (s.Custom != nil && !s.Custom.hidden) {
			s.Layout = LayoutOperator
		}
	}
	if s.Layout == LayoutChart {
		s.Custom = nil
		return nil
	}
	if s.Custom == nil {
		return fault.Refuse("kube.no-custom-resource", "milvus-operator manages this release, but there is no Milvus resource %q", r.Name).At(c.String()).
			Hint("set instance.kubernetes.release to the resource's name: kubectl%s get milvus -n %s", c.contextFlag(), c.namespace)
	}
	if s.Custom.hidden {
		return s.Custom.err
	}
	return nil
}

func deploymentOf(d *appsv1.Deployment) Workload {
	return Workload{
		Kind: "Deployment", Name: d.Name, Desired: replicas(d.Spec.Replicas), Actual: d.Status.Replicas + orZero(d.Status.TerminatingReplicas),
		Ready: d.Status.ReadyReplicas, Updated: d.Status.UpdatedReplicas, Settled: d.Status.ObservedGeneration >= d.Generation,
		Recorded: d.Annotations[recordAnnotation],
		template: d.Spec.Template, selector: selectorOf(d.Spec.Selector), resource: deployments,
	}
}

func statefulSetOf(s *appsv1.StatefulSet) Workload {
	return Workload{
		Kind: "StatefulSet", Name: s.Name, Desired: replicas(s.Spec.Replicas), Actual: s.Status.Replicas,
		Ready: s.Status.ReadyReplicas, Updated: s.Status.UpdatedReplicas, Settled: s.Status.ObservedGeneration >= s.Generation,
		Recorded: s.Annotations[recordAnnotation],
		template: s.Spec.Template, selector: selectorOf(s.Spec.Selector), resource: statefulSets,
	}
}

func podOf(pod *corev1.Pod, found match) Pod {
	p := Pod{
		Name: pod.Name, UID: string(pod.UID), Component: found.component, Unlabeled: found.unlabeled, Phase: string(pod.Status.Phase),
		Ready: slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}),
	}
	for _, container := range pod.Status.ContainerStatuses {
		p.Restarts += container.RestartCount
		if waiting := container.State.Waiting; waiting != nil && p.Waiting == "" {
			p.Waiting = waiting.Reason
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			p.Waiting = c.Reason + ": " + c.Message
		}
	}
	if pod.DeletionTimestamp != nil {
		ends := pod.DeletionTimestamp.Time
		since := ends
		if pod.DeletionGracePeriodSeconds != nil {
			since = ends.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
		p.Terminating, p.GraceEnds = &since, &ends
	}
	return p
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func orZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// selectorOf reads a selector that the API server has validated.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

func merged(template, object map[string]string) map[string]string {
	all := map[string]string{}
	for k, v := range template {
		all[k] = v
	}
	for k, v := range object {
		all[k] = v
	}
	return all
}

// String names the workload and how much of it there is.
func (w Workload) String() string {
	text := fmt.Sprintf("%s %s (%s)", strings.ToLower(w.Kind), w.Name, w.Component)
	if w.Unlabeled != "" {
		text += ": " + w.Unlabeled
	}
	return text
}

// String names the pod and what it is doing.
func (p Pod) String() string {
	text := fmt.Sprintf("pod %s (%s)", p.Name, p.Component)
	switch {
	case p.Terminating != nil:
		text += fmt.Sprintf(": terminating since %s, killed at %s at the latest",
			p.Terminating.UTC().Format(time.TimeOnly), p.GraceEnds.UTC().Format(time.TimeOnly))
	case p.Waiting != "":
		text += ": " + p.Waiting
	default:
		text += ": " + strings.ToLower(p.Phase)
	}
	if p.Unlabeled != "" {
		text += "; " + p.Unlabeled
	}
	return text
}
