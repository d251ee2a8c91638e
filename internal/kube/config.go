package kube

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

// MilvusConfig is what a release's pods read as Milvus's configuration.
type MilvusConfig struct {
	ConfigMap string
	Files     []ConfigFile // weakest first: a later file overrides an earlier one
	Helm      string       // the Helm release that renders the ConfigMap; empty: Helm does not

	version string
}

// ConfigFile is one key of the ConfigMap.
type ConfigFile struct {
	Key  string // in the ConfigMap
	Name string // as Milvus sees it: default.yaml, user.yaml, milvus.yaml
	Text string
}

// filePrecedence is the order in which Milvus merges its files, weakest first
// (base_table.go, 2.6).
var filePrecedence = []string{"milvus.yaml", "_test.yaml", "default.yaml", "user.yaml"}

// MilvusConfig reads the configuration that the release's pods mount, from
// whatever ConfigMap their pod templates name.
func (c *Client) MilvusConfig(ctx context.Context, s *State) (*MilvusConfig, error) {
	name, mounts, err := s.configMount()
	if err != nil {
		return nil, err
	}
	var raw corev1.ConfigMap
	if err := c.get(ctx, configMaps, name, &raw); err != nil {
		return nil, err
	}
	config := &MilvusConfig{ConfigMap: name, version: raw.ResourceVersion}
	if raw.Labels[managedByLabel] == "Helm" {
		config.Helm = orElse(raw.Annotations["meta.helm.sh/release-name"], raw.Labels[instanceLabel])
	}
	for key, text := range raw.Data {
		if file := fileOf(key, mounts); slices.Contains(filePrecedence, file) {
			config.Files = append(config.Files, ConfigFile{Key: key, Name: file, Text: text})
		}
	}
	slices.SortFunc(config.Files, func(a, b ConfigFile) int {
		return slices.Index(filePrecedence, a.Name) - slices.Index(filePrecedence, b.Name)
	})
	return config, nil
}

// configMount finds the ConfigMap volume mounted where Milvus reads its files.
func (s *State) configMount() (string, []corev1.VolumeMount, error) {
	for _, w := range s.Workloads {
		for _, volume := range w.template.Spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			if mounts := mountsOf(w.template.Spec, volume.Name); len(mounts) > 0 {
				return volume.ConfigMap.Name, mounts, nil
			}
		}
	}
	return "", nil, fault.Refuse("kube.no-config", "no milvus workload of the release mounts a ConfigMap below %s", configDir).
		Hint("give the configuration as files: instance.milvusConfig.files")
}

func mountsOf(pod corev1.PodSpec, volume string) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, container := range pod.Containers {
		for _, mount := range container.VolumeMounts {
			if mount.Name == volume && strings.HasPrefix(mount.MountPath, configDir) {
				mounts = append(mounts, mount)
			}
		}
	}
	return mounts
}

// fileOf is the file that Milvus sees for a key: mounted alone (subPath) under a
// name of its own, or with the whole ConfigMap under the key's name.
func fileOf(key string, mounts []corev1.VolumeMount) string {
	whole := false
	for _, mount := range mounts {
		if mount.SubPath == key {
			return path.Base(mount.MountPath)
		}
		whole = whole || mount.SubPath == ""
	}
	if whole {
		return key
	}
	return ""
}

// UpdateConfig replaces the text of one file of the configuration, unless
// somebody changed the ConfigMap since it was read: then it is read again and
// edit decides anew. edit returns the file's key and its new text; an unchanged
// text ends it without a write.
func (c *Client) UpdateConfig(ctx context.Context, s *State, edit func(*MilvusConfig) (key, text string, err error)) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		config, err := c.MilvusConfig(ctx, s)
		if err != nil {
			return err
		}
		key, text, err := edit(config)
		if err != nil || config.text(key) == text {
			return err
		}
		err = c.patch(ctx, configMaps, config.ConfigMap, "", map[string]any{
			"metadata": map[string]any{"resourceVersion": config.version},
			"data":     map[string]any{key: text},
		})
		if err == nil {
			failpoint.Hit("kube/configmap-patched")
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return err
		}
	}
}

func (m *MilvusConfig) text(key string) string {
	for _, f := range m.Files {
		if f.Key == key {
			return f.Text
		}
	}
	return ""
}
