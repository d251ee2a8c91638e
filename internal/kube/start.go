package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

// Planned says which replicas a start would restore: those given, else those
// recorded by the stop. Nothing recorded and nothing running is refused.
func (s *State) Planned(given []Replicas) ([]Replicas, error) {
	if len(given) > 0 {
		return given, s.known(given)
	}
	planned, err := s.recorded()
	if err != nil {
		return nil, err
	}
	if len(planned) == 0 {
		return nil, fault.Refuse("kube.no-record", "nothing says how many replicas ran before the stop").
			Hint("give them in the start step: replicas: {my-release-milvus-proxy: 1, ...}").
			Hint("next time let the assertStopped step stop milvus (stop: true): it writes them down")
	}
	return planned, nil
}

func (s *State) known(given []Replicas) error {
	for _, g := range given {
		if s.byCustom() {
			if _, ok := s.Custom.Wanted[g.Name]; !ok {
				return fault.Refuse("kube.unknown-workload", "milvus resource %s has no component %q", s.Custom.Name, g.Name).
					Hint("give one of: %s", strings.Join(sortedKeys(s.Custom.Wanted), ", "))
			}
			continue
		}
		if !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == g.Name }) {
			var names []string
			for _, w := range s.Workloads {
				names = append(names, w.Name)
			}
			return fault.Refuse("kube.unknown-workload", "the release has no workload %q", g.Name).
				Hint("give one of: %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// Restore scales to the replicas planned. Running it again is safe; the record of
// the stop is removed by Forget, when Milvus is known to run.
func (c *Client) Restore(ctx context.Context, s *State, planned []Replicas) error {
	counts := map[string]int32{}
	for _, p := range planned {
		counts[p.Name] = p.Count
	}
	if s.byCustom() {
		var record any
		if s.Custom.Recorded != "" {
			record = s.Custom.Recorded
		}
		err := c.scaleCustom(ctx, s.Custom, record, func(name string) int32 { return counts[name] })
		if err == nil {
			failpoint.Hit("kube/custom-resource-started")
		}
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, w := range s.Workloads {
		if count, ok := counts[w.Name]; ok && w.Desired != count {
			group.Go(func() error {
				if err := c.scale(ctx, w, count); err != nil {
					return err
				}
				failpoint.Hit("kube/scaled-up")
				return nil
			})
		}
	}
	return group.Wait()
}

// Forget removes the records that Stop left.
func (c *Client) Forget(ctx context.Context, r Release) error {
	s, err := c.Look(ctx, r)
	if err != nil {
		return err
	}
	if s.byCustom() {
		if s.Custom.Recorded == "" {
			return nil
		}
		return c.patch(ctx, milvuses, s.Custom.Name, "", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{recordAnnotation: nil}},
		})
	}
	for _, w := range s.Workloads {
		if w.Recorded == "" {
			continue
		}
		if err := c.annotate(ctx, w, nil); err != nil {
			return err
		}
	}
	return nil
}

// Ready reports whether the release runs as planned, and in a few words what is
// still missing.
func (s *State) Ready(planned []Replicas) (missing []string) {
	for _, w := range s.Workloads {
		switch {
		case !s.byCustom() && w.Desired != planOf(planned, w):
			missing = append(missing, fmt.Sprintf("%s wants %d of %d replicas", w.Component, w.Desired, planOf(planned, w)))
		case !w.Settled || w.Updated < w.Desired || w.Ready < w.Desired || w.Actual > w.Desired:
			missing = append(missing, fmt.Sprintf("%s %d/%d ready", w.Component, w.Ready, w.Desired))
		}
	}
	if s.byCustom() {
		for _, p := range planned {
			if s.Custom.Wanted[p.Name] != p.Count {
				missing = append(missing, fmt.Sprintf("%s: the milvus resource asks for %d of %d", p.Name, s.Custom.Wanted[p.Name], p.Count))
			}
		}
		if !s.Custom.Seen {
			missing = append(missing, "the operator has not yet seen the change")
		}
		if s.Custom.Status != "Healthy" {
			missing = append(missing, "the operator reports "+orElse(s.Custom.Status, "nothing yet"))
		}
	}
	return missing
}

func planOf(planned []Replicas, w Workload) int32 {
	for _, p := range planned {
		if p.Name == w.Name {
			return p.Count
		}
	}
	return 0
}

// Rollout says what to wait for.
type Rollout struct {
	Planned     []Replicas
	MaxRestarts int32         // restarts of one pod's containers that are put up with
	Steady      time.Duration // how long everything must stay ready without a restart
}

// WaitRunning waits until the release runs as planned and stays so. A pod that
// restarts fails it, however often it was ready in between: a streaming node that
// cannot read its positions starts, passes a probe, and panics, over and over.
func (c *Client) WaitRunning(ctx context.Context, r Release, rollout Rollout, wait Wait) error {
	var (
		missing  []string
		since    time.Time
		counter  = restarts{max: rollout.MaxRestarts, first: map[string]int32{}}
		lastSeen *State
	)
	err := c.poll(ctx, r, wait, func(s *State) (bool, error) {
		lastSeen = s
		if err := counter.check(s.Pods); err != nil {
			return false, err.At(c.String()).Hint("see why: kubectl%s logs -n %s --previous POD", c.contextFlag(), c.namespace)
		}
		if missing = s.Ready(rollout.Planned); len(missing) > 0 {
			since = time.Time{}
			return false, nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= rollout.Steady, nil
	})
	if err != errTimeout {
		return err
	}
	if len(missing) == 0 {
		missing = []string{"it was not ready for " + rollout.Steady.String() + " at a stretch"}
	}
	failure := fault.Fail("kube.not-ready", "milvus is not ready within %s: %s", wait.Timeout, strings.Join(missing, "; ")).At(c.String())
	for _, p := range lastSeen.Pods {
		if !p.Ready {
			failure.Hint("look at %s: kubectl%s describe pod -n %s %s", p, c.contextFlag(), c.namespace, p.Name)
		}
	}
	return failure
}

// restarts counts from what each pod had when it was first seen; a pod that was
// made after the watch began starts at its own count.
type restarts struct {
	max   int32
	begun bool
	first map[string]int32 // by pod UID
}

func (r *restarts) check(pods []Pod) *fault.Error {
	for _, p := range pods {
		if _, seen := r.first[p.UID]; !seen {
			r.first[p.UID] = 0
			if !r.begun {
				r.first[p.UID] = p.Restarts
			}
		}
		if n := p.Restarts - r.first[p.UID]; n > r.max {
			return fault.Fail("kube.restarts", "pod %s (%s) has restarted %s since the start, it does not stay up", p.Name, p.Component, times(n))
		}
	}
	r.begun = true
	return nil
}

func times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
