package kube

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"

	"runbook/internal/fault"
)

// target is the pod's end of a tunnel.
type target struct {
	pod  string
	port int
}

// resolve finds the pod behind an address as pods of the namespace write it: a
// service, a pod behind a headless service, a pod's or a service's IP. It is asked
// anew at every dial, since a pod that moves keeps its name and changes its IP.
// found is false for an address that is none of the cluster's.
func (c *Client) resolve(ctx context.Context, address string) (t target, found bool, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return target{}, false, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return target{}, false, fmt.Errorf("port of %s: %w", address, err)
	}
	if ip := net.ParseIP(host); ip != nil {
		return c.resolveIP(ctx, ip.String(), port)
	}
	name, ok := c.clusterName(host)
	if !ok {
		return target{}, false, nil
	}
	if name.pod != "" {
		return c.resolvePod(ctx, name, port)
	}
	return c.resolveService(ctx, name.service, port)
}

// clusterName is a host name taken apart: SERVICE or POD.SERVICE, both with or
// without the namespace and the cluster's domain.
type clusterName struct{ pod, service string }

func (c *Client) clusterName(host string) (clusterName, bool) {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if i := slices.Index(labels, "svc"); i >= 2 {
		labels = labels[:i]
		if labels[i-1] != c.namespace {
			return clusterName{}, false // another namespace: not ours to tunnel to
		}
	}
	if n := len(labels); n > 1 && labels[n-1] == c.namespace {
		labels = labels[:n-1]
	}
	switch len(labels) {
	case 1:
		return clusterName{service: labels[0]}, labels[0] != "localhost"
	case 2:
		return clusterName{pod: labels[0], service: labels[1]}, true
	}
	return clusterName{}, false
}

// resolveService picks a ready pod of a service and the port that it maps to.
func (c *Client) resolveService(ctx context.Context, name string, port int) (target, bool, error) {
	var service corev1.Service
	if err := c.get(ctx, services, name, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return target{}, false, nil
		}
		return target{}, false, err
	}
	if len(service.Spec.Selector) == 0 {
		return target{}, false, nil // it stands for something outside the cluster
	}
	selected, err := c.podsOf(ctx, service)
	if err != nil {
		return target{}, false, err
	}
	for _, pod := range selected {
		if usable(pod) {
			return target{pod.Name, podPort(service, pod, port)}, true, nil
		}
	}
	return target{}, true, fault.Fail("tunnel.no-pod", "no pod behind service %s is ready, of %d", name, len(selected)).At(c.String()).
		Hint("look at them: kubectl%s get endpoints -n %s %s", c.contextFlag(), c.namespace, name)
}

func (c *Client) podsOf(ctx context.Context, service corev1.Service) ([]corev1.Pod, error) {
	var terms []string
	for _, key := range sortedKeys(service.Spec.Selector) {
		terms = append(terms, key+"="+service.Spec.Selector[key])
	}
	return list[corev1.Pod](ctx, c, pods, url.Values{"labelSelector": {strings.Join(terms, ",")}})
}

// usable reports whether a pod may be dialled: a pod that is not ready may still
// be what is wanted when it is named itself, but not in the service's stead.
func usable(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podPort maps a service's port to the pod's, which may go by a name.
func podPort(service corev1.Service, pod corev1.Pod, port int) int {
	for _, p := range service.Spec.Ports {
		if int(p.Port) != port {
			continue
		}
		if p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal != 0 {
			return int(p.TargetPort.IntVal)
		}
		for _, container := range pod.Spec.Containers {
			for _, containerPort := range container.Ports {
				if containerPort.Name == p.TargetPort.StrVal && containerPort.Name != "" {
					return int(containerPort.ContainerPort)
				}
			}
		}
	}
	return port // a headless service names the pods' own ports
}

// resolvePod finds POD of POD.SERVICE, the form in which a StatefulSet's pods
// know each other.
func (c *Client) resolvePod(ctx context.Context, name clusterName, port int) (target, bool, error) {
	var pod corev1.Pod
	err := c.get(ctx, pods, name.pod, &pod)
	switch {
	case err == nil && (pod.Spec.Subdomain == name.service || pod.Spec.Subdomain == ""):
		return target{pod.Name, port}, true, nil
	case err != nil && !apierrors.IsNotFound(err):
		return target{}, false, err
	}
	var service corev1.Service
	if err := c.get(ctx, services, name.service, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return target{}, false, nil
		}
		return target{}, false, err
	}
	return target{}, true, fault.Fail("tunnel.no-pod", "there is no pod %s behind service %s", name.pod, name.service).At(c.String()).
		Hint("see which there are: kubectl%s get pods -n %s", c.contextFlag(), c.namespace)
}

func (c *Client) resolveIP(ctx context.Context, ip string, port int) (target, bool, error) {
	parsed := net.ParseIP(ip)
	if parsed.IsLoopback() {
		return target{}, false, nil
	}
	matching, err := list[corev1.Pod](ctx, c, pods, url.Values{"fieldSelector": {"status.podIP=" + ip}})
	if err != nil {
		return target{}, false, err
	}
	for _, pod := range matching {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			return target{pod.Name, port}, true, nil
		}
	}
	all, err := list[corev1.Service](ctx, c, services, nil)
	if err != nil {
		return target{}, false, err
	}
	for _, service := range all {
		if slices.Contains(service.Spec.ClusterIPs, ip) {
			return c.resolveService(ctx, service.Name, port)
		}
	}
	if parsed.IsPrivate() {
		return target{}, true, fault.Fail("tunnel.no-pod", "no pod or service of the namespace has the address %s: the pod that had it has moved", ip).At(c.String()).
			Hint("use its name instead of its address where the plan gives one").
			Hint("a log-store node that is gone for good: see skipUnreachableNodes of resetWal")
	}
	return target{}, false, nil
}
