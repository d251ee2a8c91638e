package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	nodeName = "kubelab-node"
	tick     = 100 * time.Millisecond
	// crashEvery is how long a pod that crash-loops is up, and then down.
	crashEvery = 700 * time.Millisecond
)

// kubelet stands in for the scheduler and for a node's kubelet: it binds pods,
// reports them running, ends deleted ones and forwards ports. Rules make single
// pods slow, broken, or real processes.
type kubelet struct {
	clients *clients
	pods    map[types.UID]*podState
	nextIP  int
	log     *slog.Logger
}

// podState is what the node knows of one pod.
type podState struct {
	ip       string
	since    time.Time // of the present state of its container
	down     bool      // the container has ended and waits to be started again
	restarts int32
	deleted  time.Time
	process  *process
}

func (k *kubelet) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := k.round(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("kubelet", "error", err)
		}
		select {
		case <-ctx.Done():
			for _, state := range k.pods {
				state.process.kill()
			}
			return
		case <-ticker.C:
		}
	}
}

func (k *kubelet) round(ctx context.Context) error {
	all, err := readRules(ctx, k.clients)
	if err != nil {
		return err
	}
	pods, err := k.clients.typed.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	alive := map[types.UID]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		alive[pod.UID] = true
		if err := k.tend(ctx, pod, all.forPod(pod)); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	for uid, state := range k.pods {
		if !alive[uid] {
			state.process.kill()
			delete(k.pods, uid)
		}
	}
	return k.scaleBack(ctx, all)
}

// tend moves one pod on by one step.
func (k *kubelet) tend(ctx context.Context, pod *corev1.Pod, r rule) error {
	if pod.Spec.NodeName == "" {
		return k.clients.typed.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{})
	}
	state := k.state(pod)
	if pod.DeletionTimestamp != nil {
		return k.end(ctx, pod, state, r)
	}
	if err := state.advance(r); err != nil {
		return err
	}
	status := state.status(pod, r)
	if equality.Semantic.DeepEqual(status, pod.Status) {
		return nil
	}
	pod.Status = status
	_, err := k.clients.typed.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (k *kubelet) state(pod *corev1.Pod) *podState {
	state, ok := k.pods[pod.UID]
	if !ok {
		k.nextIP++
		state = &podState{ip: fmt.Sprintf("10.244.%d.%d", k.nextIP/250, k.nextIP%250+1), since: time.Now()}
		if pod.Status.PodIP != "" {
			state.ip = pod.Status.PodIP
		}
		k.pods[pod.UID] = state
	}
	return state
}

// end lets a deleted pod go on for as long as its rule says, its process for as
// long as it takes, then removes it as a kubelet does.
func (k *kubelet) end(ctx context.Context, pod *corev1.Pod, state *podState, r rule) error {
	if state.deleted.IsZero() {
		state.deleted = time.Now()
		state.process.terminate()
	}
	if time.Since(state.deleted) < time.Duration(r.Terminate) || state.process.running() {
		return nil
	}
	now := int64(0)
	return k.clients.typed.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}

// advance starts, ends and restarts the pod's container.
func (s *podState) advance(r rule) error {
	switch {
	case s.down:
		if time.Since(s.since) < crashEvery {
			return nil
		}
		s.down, s.since = false, time.Now()
		s.restarts++
		s.process = nil
	case r.CrashLoop && time.Since(s.since) >= crashEvery, s.process != nil && !s.process.running():
		s.down, s.since = true, time.Now()
		return nil
	}
	if len(r.Exec) > 0 && s.process == nil {
		p, err := startProcess(r.Exec)
		s.process = p
		return err
	}
	return nil
}

func (s *podState) status(pod *corev1.Pod, r rule) corev1.PodStatus {
	ready := !s.down && !r.NeverReady && (r.Probe == "" || s.process.probe(r.Probe))
	status := *pod.Status.DeepCopy()
	status.Phase, status.PodIP, status.HostIP = corev1.PodRunning, s.ip, "127.0.0.1"
	status.PodIPs, status.HostIPs = []corev1.PodIP{{IP: s.ip}}, []corev1.HostIP{{IP: "127.0.0.1"}}
	if status.StartTime == nil {
		status.StartTime = &metav1.Time{Time: s.since.Truncate(time.Second)}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		setCondition(&status, kind, ready || kind == corev1.PodInitialized)
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		container := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: ready, RestartCount: s.restarts, Started: new(!s.down)}
		if s.down {
			container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "the container ended"}
		} else {
			container.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: s.since.Truncate(time.Second)}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, container)
	}
	return status
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool) {
	value := corev1.ConditionFalse
	if holds {
		value = corev1.ConditionTrue
	}
	for i, c := range status.Conditions {
		if c.Type == kind {
			if c.Status != value {
				status.Conditions[i].Status, status.Conditions[i].LastTransitionTime = value, metav1.Now().Rfc3339Copy()
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.Now().Rfc3339Copy()})
}

// scaleBack plays whatever brings a workload back that somebody scaled to 0.
func (k *kubelet) scaleBack(ctx context.Context, all rules) error {
	for _, r := range all {
		if r.ScaleBack == 0 {
			continue
		}
		deployments := k.clients.typed.AppsV1().Deployments(r.Namespace)
		scale, err := deployments.GetScale(ctx, r.Pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if scale.Spec.Replicas == 0 {
			scale.Spec.Replicas = r.ScaleBack
			if _, err := deployments.UpdateScale(ctx, r.Pod, scale, metav1.UpdateOptions{FieldManager: "lab-autoscaler"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// register makes the node known, with the port on which it forwards ports.
func (k *kubelet) register(ctx context.Context, port int) error {
	nodes := k.clients.typed.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
