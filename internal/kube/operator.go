package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Custom is the Milvus resource that milvus-operator (1.3, milvus.io/v1beta1)
// makes the release's objects from. What is set there comes back, whatever is
// done to those objects.
type Custom struct {
	Name     string
	Status   string // "Stopped", "Healthy", ...: what the operator last reported
	Seen     bool   // the operator has seen the latest change
	Manual   bool   // spec.components.enableManualMode: the operator leaves replicas alone
	Stream   string // spec.dependencies.msgStreamType
	Wanted   map[string]int32
	Recorded string

	version string
	groups  map[string][]map[string]any // per component, its deployment groups as written
	hidden  bool
	err     error
}

// customComponents are the names under spec.components that have replicas.
var customComponents = []string{
	"standalone", "mixCoord", "rootCoord", "dataCoord", "queryCoord", "indexCoord",
	"proxy", "queryNode", "dataNode", "indexNode", "streamingNode", "cdc",
}

// customResource is the part of a Milvus resource that is read here.
type customResource struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Mode         string                     `json:"mode"`
		Components   map[string]json.RawMessage `json:"components"`
		Dependencies struct {
			MsgStreamType string `json:"msgStreamType"`
		} `json:"dependencies"`
	} `json:"spec"`
	Status struct {
		Status             string `json:"status"`
		ObservedGeneration int64  `json:"observedGeneration"`
	} `json:"status"`
}

// custom reads the Milvus resource of the release's name; nil when there is none
// or the cluster does not know the kind.
func (c *Client) custom(ctx context.Context, r Release) (*Custom, error) {
	if r.Name == "" || r.Layout == LayoutChart {
		return nil, nil
	}
	var raw customResource
	err := c.get(ctx, milvuses, r.Name, &raw)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return &Custom{Name: r.Name, hidden: true, err: err}, nil
	case err != nil:
		return nil, err
	}
	return raw.read()
}

func (raw *customResource) read() (*Custom, error) {
	custom := &Custom{
		Name: raw.Metadata.Name, version: raw.Metadata.ResourceVersion, Recorded: raw.Metadata.Annotations[recordAnnotation],
		Status: raw.Status.Status, Seen: raw.Status.ObservedGeneration >= raw.Metadata.Generation,
		Stream: raw.Spec.Dependencies.MsgStreamType,
		Wanted: map[string]int32{}, groups: map[string][]map[string]any{},
	}
	if manual, ok := raw.Spec.Components["enableManualMode"]; ok {
		if err := json.Unmarshal(manual, &custom.Manual); err != nil {
			return nil, fmt.Errorf("milvus %s: spec.components.enableManualMode: %w", custom.Name, err)
		}
	}
	for _, name := range customComponents {
		data, ok := raw.Spec.Components[name]
		if !ok || string(data) == "null" {
			continue
		}
		var component struct {
			Replicas *int32           `json:"replicas"`
			Groups   []map[string]any `json:"groups"`
		}
		if err := json.Unmarshal(data, &component); err != nil {
			return nil, fmt.Errorf("milvus %s: spec.components.%s: %w", custom.Name, name, err)
		}
		custom.Wanted[name] = wantedReplicas(raw.Spec.Mode, name, component.Replicas)
		for _, group := range component.Groups {
			n, _ := group["replicas"].(float64)
			custom.Wanted[groupKey(name, group)] = int32(n)
		}
		if len(component.Groups) > 0 {
			custom.groups[name] = component.Groups
		}
	}
	return custom, nil
}

// wantedReplicas applies the operator's default: one of each, but no standalone
// in cluster mode.
func wantedReplicas(mode, component string, given *int32) int32 {
	if given == nil && component == "standalone" && mode == "cluster" {
		return 0
	}
	return replicas(given)
}

func groupKey(component string, group map[string]any) string {
	return fmt.Sprintf("%s/%v", component, group["name"])
}

// Serving names the components that the resource asks for, with their replicas.
func (c *Custom) Serving() []string {
	var serving []string
	for _, name := range slices.Sorted(maps.Keys(c.Wanted)) {
		if n := c.Wanted[name]; n != 0 { // -1: managed by an autoscaler
			serving = append(serving, fmt.Sprintf("%s %d", name, n))
		}
	}
	return serving
}

// scaleCustom gives every component the replicas that count says, and records
// annotation (nil removes it), in one change.
func (c *Client) scaleCustom(ctx context.Context, custom *Custom, annotation any, count func(name string) int32) error {
	components := map[string]any{}
	for name := range custom.Wanted {
		component, _, isGroup := strings.Cut(name, "/")
		if isGroup {
			continue
		}
		fields := map[string]any{"replicas": count(component)}
		if groups, ok := custom.groups[component]; ok {
			fields["groups"] = scaledGroups(component, groups, count)
		}
		components[component] = fields
	}
	return c.patchCustom(ctx, custom, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{recordAnnotation: annotation}},
		"spec":     map[string]any{"components": components},
	})
}

// patchCustom changes the resource as it was read. The operator writes its status
// all the time, so a conflict is no reason to give up as long as what was read of
// the spec still holds.
func (c *Client) patchCustom(ctx context.Context, custom *Custom, fields map[string]any) error {
	const attempts = 5
	current := custom
	for attempt := 1; ; attempt++ {
		fields["metadata"] = withVersion(fields["metadata"], current.version)
		err := c.patch(ctx, milvuses, custom.Name, "", fields)
		if !apierrors.IsConflict(err) || attempt == attempts {
			return err
		}
		again, readErr := c.custom(ctx, Release{Name: custom.Name})
		if readErr != nil {
			return readErr
		}
		if again == nil || !maps.Equal(again.Wanted, custom.Wanted) || again.Stream != custom.Stream {
			return err
		}
		current = again
	}
}

func withVersion(metadata any, version string) map[string]any {
	m, _ := metadata.(map[string]any)
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	m["resourceVersion"] = version
	return m
}

func scaledGroups(component string, groups []map[string]any, count func(string) int32) []map[string]any {
	var scaled []map[string]any
	for _, group := range groups {
		changed := maps.Clone(group)
		changed["replicas"] = count(groupKey(component, group))
		scaled = append(scaled, changed)
	}
	return scaled
}

// SetStream switches the WAL that the Milvus resource names; the operator writes
// mq.type and messageQueue into the configuration from it.
func (c *Client) SetStream(ctx context.Context, custom *Custom, stream string) error {
	return c.patchCustom(ctx, custom, map[string]any{
		"spec": map[string]any{"dependencies": map[string]any{"msgStreamType": stream}},
	})
}
