package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const operatorName = "milvus-operator"

// operator stands in for milvus-operator 1.3: it makes a ConfigMap and one
// Deployment a component from each Milvus resource, over and over, so that what
// somebody changes there is undone, and reports a status.
type operator struct {
	clients *clients
	log     *slog.Logger
}

// milvus is the part of a Milvus resource that the stand-in reads and writes.
type milvus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Mode         string                     `json:"mode"`
		Components   map[string]json.RawMessage `json:"components"`
		Dependencies struct {
			MsgStreamType string `json:"msgStreamType"`
			Etcd          struct {
				Endpoints []string `json:"endpoints"`
			} `json:"etcd"`
			Storage struct {
				Endpoint  string `json:"endpoint"`
				SecretRef string `json:"secretRef"`
			} `json:"storage"`
		} `json:"dependencies"`
		Config map[string]any `json:"config"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

func (o *operator) run(ctx context.Context) {
	ticker := time.NewTicker(2 * tick)
	defer ticker.Stop()
	for {
		if err := o.round(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("operator", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (o *operator) round(ctx context.Context) error {
	list, err := o.clients.dynamic.Resource(milvusResource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		data, err := item.MarshalJSON()
		if err != nil {
			return err
		}
		var m milvus
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		if err := o.reconcile(ctx, &m); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("milvus %s: %w", m.Name, err)
		}
	}
	return nil
}

func (o *operator) reconcile(ctx context.Context, m *milvus) error {
	text, err := m.configuration()
	if err != nil {
		return err
	}
	if err := o.applyConfig(ctx, m, text); err != nil {
		return err
	}
	manual := m.manual()
	healthy, stopped := true, true
	for _, c := range append(clusterComponents(), standaloneComponents()...) {
		wanted, ok := m.replicas(c)
		if !ok {
			continue
		}
		d, err := o.applyDeployment(ctx, m, c, wanted, manual)
		if err != nil {
			return err
		}
		healthy = healthy && d.Status.ReadyReplicas == wanted
		stopped = stopped && wanted == 0 && d.Status.Replicas == 0
	}
	status := "Unhealthy"
	switch {
	case stopped && !manual:
		status = "Stopped"
	case healthy:
		status = "Healthy"
	}
	return o.report(ctx, m, status)
}

func (m *milvus) manual() bool { return string(m.Spec.Components["enableManualMode"]) == "true" }

func (m *milvus) replicas(c component) (int32, bool) {
	raw, ok := m.Spec.Components[c.Custom]
	if !ok {
		return 0, false
	}
	var spec struct {
		Replicas *int32 `json:"replicas"`
	}
	if json.Unmarshal(raw, &spec) != nil || spec.Replicas == nil {
		return 1, true
	}
	return *spec.Replicas, true
}

// configuration is user.yaml: spec.config, and what the operator sets itself.
func (m *milvus) configuration() (string, error) {
	config := runtime.DeepCopyJSON(m.Spec.Config)
	section := func(name string) map[string]any {
		s, ok := config[name].(map[string]any)
		if !ok {
			s = map[string]any{}
			config[name] = s
		}
		return s
	}
	endpoints := make([]any, len(m.Spec.Dependencies.Etcd.Endpoints))
	for i, e := range m.Spec.Dependencies.Etcd.Endpoints {
		endpoints[i] = e
	}
	section("etcd")["rootPath"] = m.Name
	section("etcd")["endpoints"] = endpoints
	section("minio")["address"], section("minio")["port"], _ = strings.Cut(m.Spec.Dependencies.Storage.Endpoint, ":")
	section("mq")["type"] = m.Spec.Dependencies.MsgStreamType
	section("msgChannel")["chanNamePrefix"] = map[string]any{"cluster": m.Name}
	config["messageQueue"] = m.Spec.Dependencies.MsgStreamType
	text, err := yaml.Marshal(config)
	return string(text), err
}

func (m *milvus) owned() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Labels: m.labels(""),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "milvus.io/v1beta1", Kind: "Milvus", Name: m.Name, UID: m.UID, Controller: new(true)}},
	}
}

func (m *milvus) labels(component string) map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name": "milvus", "app.kubernetes.io/instance": m.Name, "app.kubernetes.io/managed-by": operatorName,
	}
	if component != "" {
		labels["app.kubernetes.io/component"] = component
	}
	return labels
}

func (o *operator) applyConfig(ctx context.Context, m *milvus, text string) error {
	maps := o.clients.typed.CoreV1().ConfigMaps(m.Namespace)
	existing, err := maps.Get(ctx, m.Name, metav1.GetOptions{})
	wanted := map[string]string{"user.yaml": text, "hook.yaml": ""}
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: m.owned(), Data: wanted}, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case equality.Semantic.DeepEqual(existing.Data, wanted):
		return nil
	}
	existing.Data = wanted
	_, err = maps.Update(ctx, existing, metav1.UpdateOptions{FieldManager: operatorName})
	return err
}

// applyDeployment makes the Deployment of a component and keeps its replicas,
// unless manual mode leaves them to people.
func (o *operator) applyDeployment(ctx context.Context, m *milvus, c component, wanted int32, manual bool) (*appsv1.Deployment, error) {
	deployments := o.clients.typed.AppsV1().Deployments(m.Namespace)
	existing, err := deployments.Get(ctx, m.Name+"-milvus-"+c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return deployments.Create(ctx, m.deployment(c, wanted), metav1.CreateOptions{FieldManager: operatorName})
	}
	if err != nil || manual || *existing.Spec.Replicas == wanted {
		return existing, err
	}
	existing.Spec.Replicas = &wanted
	return deployments.Update(ctx, existing, metav1.UpdateOptions{FieldManager: operatorName})
}

func (m *milvus) deployment(c component, wanted int32) *appsv1.Deployment {
	meta := m.owned()
	meta.Name, meta.Labels = m.Name+"-milvus-"+c.Name, m.labels(c.Name)
	credential := func(variable, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: m.Spec.Dependencies.Storage.SecretRef}, Key: key,
		}}}
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &wanted,
		Selector: &metav1.LabelSelector{MatchLabels: m.labels(c.Name)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: m.labels(c.Name)},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "config", Image: "milvusdb/milvus-operator:v1.3.8"}},
				Containers: []corev1.Container{{
					Name: c.Name, Image: "milvusdb/milvus:v2.6.15", Args: []string{"/milvus/tools/run.sh", "milvus", "run", c.Name},
					Env:   []corev1.EnvVar{credential("MINIO_ACCESS_KEY_ID", "accesskey"), credential("MINIO_SECRET_ACCESS_KEY", "secretkey")},
					Ports: []corev1.ContainerPort{{Name: c.Name, ContainerPort: int32(c.Port)}, {Name: "metrics", ContainerPort: 9091}},
					VolumeMounts: []corev1.VolumeMount{
						{Name: "milvus-config", MountPath: "/milvus/configs/operator"}, {Name: "tools", MountPath: "/milvus/tools"},
					},
				}},
				Volumes: []corev1.Volume{
					{Name: "milvus-config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.Name}}}},
					{Name: "tools", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				},
			},
		},
	}}
}

func (o *operator) report(ctx context.Context, m *milvus, status string) error {
	// JSON numbers are float64 here.
	if m.Status["status"] == status && m.Status["observedGeneration"] == float64(m.Generation) {
		return nil
	}
	where := o.clients.dynamic.Resource(milvusResource).Namespace(m.Namespace)
	current, err := where.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	current.Object["status"] = map[string]any{"status": status, "observedGeneration": m.Generation}
	_, err = where.UpdateStatus(ctx, current, metav1.UpdateOptions{FieldManager: operatorName})
	return err
}
