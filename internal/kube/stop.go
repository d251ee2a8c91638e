package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

// recordAnnotation keeps, on what was scaled down, the replicas it had: a number
// on a workload, a JSON object by component on a Milvus resource.
const recordAnnotation = "runbook/replicas-before-stop"

// Replicas is how many of one thing ran before a stop.
type Replicas struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Count int32  `json:"count"`
}

// StillRunning lists everything that contradicts "no Milvus of this release runs
// and nothing in the cluster will start one", a line each. Empty: stopped.
func (s *State) StillRunning() []string {
	var lines []string
	for _, w := range s.Workloads {
		switch {
		case w.Desired != 0:
			lines = append(lines, fmt.Sprintf("%s wants %d replicas, has %d", w, w.Desired, w.Actual))
		case !w.Settled:
			lines = append(lines, fmt.Sprintf("%s: its controller has not yet seen the change to 0", w))
		case w.Actual != 0:
			lines = append(lines, fmt.Sprintf("%s wants 0 replicas, still has %d", w, w.Actual))
		}
	}
	for _, p := range s.Pods {
		lines = append(lines, p.String())
	}
	for _, a := range s.Autoscalers {
		if a.Owner != "" {
			lines = append(lines, fmt.Sprintf("autoscaler %s belongs to %s, which scales %s up from 0 by itself", a.Name, a.Owner, a.Target))
		}
	}
	if s.Custom != nil && !s.Custom.Manual {
		if serving := s.Custom.Serving(); len(serving) > 0 {
			lines = append(lines, fmt.Sprintf("milvus resource %s asks for %s: the operator starts them again", s.Custom.Name, strings.Join(serving, ", ")))
		}
	}
	return lines
}

// NotUp lists what must stay up while Milvus is stopped and is not, a line each.
func (s *State) NotUp() []string {
	var lines []string
	for _, w := range s.Support {
		if w.Ready < w.Desired || w.Desired == 0 {
			lines = append(lines, fmt.Sprintf("%s has %d of %d replicas ready", w, w.Ready, w.Desired))
		}
	}
	return lines
}

// Wait says how long to wait and who watches. Look is called with every state
// that was read; it may be nil.
type Wait struct {
	Timeout time.Duration
	Look    func(*State)
}

// Stop writes down how many of everything run, scales Milvus to 0 and waits until
// no pod is left. It returns what ran before, from an earlier interrupted stop
// where that has the record, also beside an error. Running it again is safe.
func (c *Client) Stop(ctx context.Context, r Release, wait Wait) ([]Replicas, error) {
	s, err := c.Look(ctx, r)
	if err != nil {
		return nil, err
	}
	before, err := s.recorded()
	if err != nil {
		return nil, err
	}
	if s.byCustom() {
		err = c.stopCustom(ctx, s.Custom, before)
	} else {
		err = c.stopWorkloads(ctx, s.Workloads)
	}
	if err != nil {
		return before, err
	}
	return before, c.waitStopped(ctx, r, wait)
}

// byCustom reports whether replicas are set through the Milvus resource.
func (s *State) byCustom() bool { return s.Custom != nil && !s.Custom.Manual }

// recorded is what runs now, or what ran when an earlier stop wrote it down.
func (s *State) recorded() ([]Replicas, error) {
	if s.byCustom() {
		return s.Custom.recorded()
	}
	var all []Replicas
	for _, w := range s.Workloads {
		count := w.Desired
		if count == 0 && w.Recorded != "" {
			n, err := strconv.ParseInt(w.Recorded, 10, 32)
			if err != nil {
				return nil, unreadableRecord(w.Kind, w.Name, err)
			}
			count = int32(n)
		}
		if count != 0 {
			all = append(all, Replicas{Kind: w.Kind, Name: w.Name, Count: count})
		}
	}
	return all, nil
}

const customKind = "Milvus"

func (c *Custom) recorded() ([]Replicas, error) {
	counts := c.Wanted
	if len(c.Serving()) == 0 && c.Recorded != "" {
		counts = map[string]int32{}
		if err := json.Unmarshal([]byte(c.Recorded), &counts); err != nil {
			return nil, unreadableRecord(customKind, c.Name, err)
		}
	}
	var all []Replicas
	for _, name := range sortedKeys(counts) {
		if counts[name] != 0 {
			all = append(all, Replicas{Kind: customKind, Name: name, Count: counts[name]})
		}
	}
	return all, nil
}

func unreadableRecord(kind, name string, err error) error {
	return fault.Refuse("kube.record", "the replicas recorded on %s %s cannot be read", strings.ToLower(kind), name).
		At(recordAnnotation).Because(err).
		Hint("correct or remove the annotation")
}

func (c *Client) stopWorkloads(ctx context.Context, workloads []Workload) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, w := range workloads {
		if w.Desired == 0 {
			continue
		}
		group.Go(func() error {
			// Written down first: a stop interrupted here can still be undone.
			if err := c.annotate(ctx, w, strconv.Itoa(int(w.Desired))); err != nil {
				return err
			}
			failpoint.Hit("kube/replicas-recorded")
			if err := c.scale(ctx, w, 0); err != nil {
				return err
			}
			failpoint.Hit("kube/scaled-down")
			return nil
		})
	}
	return group.Wait()
}

func (c *Client) stopCustom(ctx context.Context, custom *Custom, before []Replicas) error {
	if len(custom.Serving()) == 0 {
		return nil
	}
	counts := map[string]int32{}
	for _, b := range before {
		counts[b.Name] = b.Count
	}
	record, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	if err := c.scaleCustom(ctx, custom, string(record), func(string) int32 { return 0 }); err != nil {
		return err
	}
	failpoint.Hit("kube/custom-resource-stopped")
	return nil
}

// annotate writes or, with nil, removes the record on a workload.
func (c *Client) annotate(ctx context.Context, w Workload, record any) error {
	return c.patch(ctx, w.resource, w.Name, "", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{recordAnnotation: record}},
	})
}

func (c *Client) scale(ctx context.Context, w Workload, count int32) error {
	return c.patch(ctx, w.resource, w.Name, "scale", map[string]any{"spec": map[string]any{"replicas": count}})
}

// waitStopped waits until nothing contradicts the stop, and fails at once when
// somebody scales up again what was scaled to 0.
func (c *Client) waitStopped(ctx context.Context, r Release, wait Wait) error {
	var last *State
	err := c.poll(ctx, r, wait, func(s *State) (bool, error) {
		last = s
		if err := s.scaledBack(); err != nil {
			return false, err
		}
		return len(s.StillRunning()) == 0, nil
	})
	if err != errTimeout {
		return err
	}
	return fault.Fail("kube.not-stopped", "milvus has not stopped within %s: %s", wait.Timeout, strings.Join(last.StillRunning(), "; ")).At(c.String()).
		Hint("look at what holds it: kubectl%s describe pod -n %s", c.contextFlag(), c.namespace).
		Hint("run again with a longer timeout: a graceful stop may take its full grace period to flush")
}

// scaledBack finds a workload that is wanted again after the stop.
func (s *State) scaledBack() error {
	for _, w := range s.Workloads {
		if w.Desired == 0 || s.byCustom() {
			continue // what the operator keeps follows the resource in its own time
		}
		e := fault.Fail("kube.scaled-back", "%s was scaled to 0 and wants %d replicas again", w, w.Desired)
		for _, a := range s.Autoscalers {
			if a.Target == w.Name {
				e.Hint("suspend autoscaler %s (at least %d replicas) for as long as milvus must stay stopped", a.Name, a.Min)
			}
		}
		// The API server cannot tell who did it: it forgets the owner of replicas at 0.
		return e.Hint("find who scales it (an autoscaler, KEDA, a GitOps controller) and suspend that: kubectl get events --field-selector involvedObject.name=%s", w.Name)
	}
	return nil
}
