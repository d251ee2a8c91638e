package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// rule changes how pods behave. Rules are kept in the cluster itself, in a
// ConfigMap, so that a test sets them with a command.
type rule struct {
	Namespace string `json:"namespace"`
	Component string `json:"component,omitempty"` // label "component" or app.kubernetes.io/component
	Pod       string `json:"pod,omitempty"`       // prefix of the pod's name

	NeverReady bool              `json:"neverReady,omitempty"`
	CrashLoop  bool              `json:"crashLoop,omitempty"` // ready for a moment, then it fails, over and over
	Terminate  duration          `json:"terminate,omitempty"` // how long a deleted pod goes on
	Exec       []string          `json:"exec,omitempty"`      // the pod's container is this process
	Probe      string            `json:"probe,omitempty"`     // URL that says whether that process is ready
	Forward    map[string]string `json:"forward,omitempty"`   // pod port -> host:port of a real server
	ScaleBack  int32             `json:"scaleBack,omitempty"` // a workload of this name is never left at 0
}

// duration is a time.Duration that JSON shows as people write it.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

func (r rule) matches(pod *corev1.Pod) bool {
	if r.Namespace != pod.Namespace || r.Component != "" && r.Component != componentOf(pod.Labels) {
		return false
	}
	return strings.HasPrefix(pod.Name, r.Pod)
}

func componentOf(labels map[string]string) string {
	if c := labels["component"]; c != "" {
		return c
	}
	return labels["app.kubernetes.io/component"]
}

type rules []rule

// forPod merges the rules that concern a pod; a later rule's value wins.
func (all rules) forPod(pod *corev1.Pod) rule {
	merged := rule{Forward: map[string]string{}}
	for _, r := range all {
		if !r.matches(pod) {
			continue
		}
		merged.NeverReady = merged.NeverReady || r.NeverReady
		merged.CrashLoop = merged.CrashLoop || r.CrashLoop
		if r.Terminate != 0 {
			merged.Terminate = r.Terminate
		}
		if len(r.Exec) > 0 {
			merged.Exec, merged.Probe = r.Exec, r.Probe
		}
		for port, address := range r.Forward {
			merged.Forward[port] = address
		}
	}
	return merged
}

const (
	rulesNamespace = "kube-system"
	rulesName      = "kubelab"
	rulesKey       = "rules"
)

func readRules(ctx context.Context, c *clients) (rules, error) {
	config, err := c.typed.CoreV1().ConfigMaps(rulesNamespace).Get(ctx, rulesName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all rules
	if err := json.Unmarshal([]byte(config.Data[rulesKey]), &all); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return all, nil
}

// changeRules replaces the rules by what change makes of them.
func changeRules(ctx context.Context, c *clients, change func(rules) rules) error {
	maps := c.typed.CoreV1().ConfigMaps(rulesNamespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		config, err := maps.Get(ctx, rulesName, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return err
		}
		if missing {
			config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rulesName}}
		}
		var all rules
		if text := config.Data[rulesKey]; text != "" {
			if err := json.Unmarshal([]byte(text), &all); err != nil {
				return fmt.Errorf("rules: %w", err)
			}
		}
		data, err := json.Marshal(change(all))
		if err != nil {
			return err
		}
		config.Data = map[string]string{rulesKey: string(data)}
		if missing {
			_, err = maps.Create(ctx, config, metav1.CreateOptions{})
		} else {
			_, err = maps.Update(ctx, config, metav1.UpdateOptions{})
		}
		return err
	})
}

func knobCommand(l *lab) *cobra.Command {
	var (
		r         rule
		terminate time.Duration
		forward   []string
		clear     bool
	)
	command := &cobra.Command{
		Use:   "knob",
		Short: "make pods behave differently: slow to end, never ready, crash-looping, real processes, ports that lead to real servers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := l.clients()
			if err != nil {
				return err
			}
			r.Namespace, r.Terminate, r.Forward = l.namespace, duration(terminate), map[string]string{}
			for _, f := range forward {
				port, address, ok := strings.Cut(f, "=")
				if !ok {
					return fmt.Errorf("--forward %s: want PORT=HOST:PORT", f)
				}
				r.Forward[port] = address
			}
			return changeRules(cmd.Context(), c, func(all rules) rules {
				if clear {
					return slices.DeleteFunc(all, func(old rule) bool {
						return old.Namespace == r.Namespace && old.Component == r.Component && old.Pod == r.Pod
					})
				}
				return append(all, r)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.Component, "component", "", "pods of this component")
	flags.StringVar(&r.Pod, "pod", "", "pods whose name begins so; for --scale-back the Deployment")
	flags.BoolVar(&r.NeverReady, "never-ready", false, "never ready")
	flags.BoolVar(&r.CrashLoop, "crash-loop", false, "ready for a moment, then the container ends, over and over")
	flags.DurationVar(&terminate, "terminate", 0, "how long a deleted pod goes on")
	flags.StringArrayVar(&r.Exec, "exec", nil, "the pod's container is this process: program and arguments, one flag each")
	flags.StringVar(&r.Probe, "probe", "", "URL that says whether that process is ready")
	flags.StringArrayVar(&forward, "forward", nil, "PORT=HOST:PORT: where connections to a port of the pod go")
	flags.Int32Var(&r.ScaleBack, "scale-back", 0, "bring the Deployment back to so many replicas whenever it is at 0")
	flags.BoolVar(&clear, "clear", false, "remove the rules with this --component and --pod")
	return command
}
