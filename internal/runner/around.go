package runner

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/instance"
)

// InstanceLines names an instance by what tells it from another.
func InstanceLines(s instance.Settings) []event.Line {
	lines := []event.Line{
		{Subject: "etcd", Value: strings.Join(s.Etcd.Endpoints, ", ") + ", root " + s.Etcd.RootPath + ", metadata under " + s.MetaRoot()},
		{Subject: "objects", Value: s.ObjectStorage.Endpoint + ", bucket " + s.ObjectStorage.Bucket + ", wal under " + s.WALObjectRoot()},
		{Subject: "wal", Value: s.WAL.Type + ", storage " + s.WAL.StorageType + ", metadata prefix " + s.WAL.MetaPrefix},
	}
	if k := s.Kubernetes; k != nil {
		via := "reached directly"
		if k.PortForward {
			via = "everything reached through its API server"
		}
		lines = append(lines, event.Line{Subject: "kubernetes", Value: "release " + cmp.Or(k.Release, k.Selector) + ", namespace " + cmp.Or(k.Namespace, "of the kubeconfig") + ", " + via})
	}
	return lines
}

// resolvedLines tells what was taken from Milvus's own configuration, and from where.
func (r *Runner) resolvedLines() []event.Line {
	settings, notes := r.Instance.Resolution()
	var lines []event.Line
	if len(settings) > 0 {
		from := event.Line{Subject: "settings", Value: "taken from milvus's own configuration"}
		for _, s := range settings {
			text := s.Field + ": " + s.Value + ", from " + s.Source
			if s.Lost != "" {
				text += "; " + s.Lost
			}
			from.Detail = append(from.Detail, text)
		}
		lines = append(lines, from)
	}
	for _, note := range notes {
		lines = append(lines, event.Line{Subject: "note", Value: note})
	}
	return lines
}

// InstanceName is InstanceLines in one line.
func InstanceName(s instance.Settings) string {
	return "etcd " + strings.Join(s.Etcd.Endpoints, ",") + " root " + s.Etcd.RootPath +
		", bucket " + s.ObjectStorage.Bucket + " at " + s.ObjectStorage.Endpoint
}

// lookAround tells what an earlier run left and who holds the instance.
func (r *Runner) lookAround(ctx context.Context, p *Preview) error {
	settings := r.Instance.Settings
	client, err := r.Instance.Etcd(ctx)
	if err != nil {
		return err
	}
	p.Left, p.Holder, err = claim.Read(ctx, client, settings.Etcd.RootPath)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.Refuse("run.etcd", "etcd does not answer").At(strings.Join(settings.Etcd.Endpoints, ",")).Because(err).
			Hint("check that a majority of the members is up and that endpoints, TLS and user in instance.etcd are right")
	}
	if p.Holder != nil {
		text := "another run holds the lock: " + p.Holder.String()
		if p.Holder.Gone() {
			text = "a run that was killed still holds the lock, which is taken over: " + p.Holder.String()
		}
		r.emit(event.Event{Event: event.LockHeld, Text: text})
	}
	if p.Left == nil {
		return nil
	}
	return r.tellLeft(p)
}

// tellLeft shows what was left half done, and refuses a plan that would destroy
// more without finishing it.
func (r *Runner) tellLeft(p *Preview) error {
	missing := r.unsettled(p.Left)
	destroys := slices.ContainsFunc(r.steps, func(s *stepState) bool { return s.kind.Destructive })
	text := "an earlier run left this instance half done; applying this plan finishes it"
	if len(missing) > 0 {
		text = "an earlier run left this instance half done; applying this plan does not finish it"
	}
	r.emit(event.Event{Event: event.LeftFound, Text: text, Lines: leftLines(*p.Left)})
	if len(missing) == 0 || !destroys || r.undo {
		return nil
	}
	return fault.Refuse("run.unfinished", "an earlier run left this instance half done, and no step of this plan provides %s", strings.Join(missing, ", ")).
		At(claim.MarkerKey(r.Instance.Settings.Etcd.RootPath)).
		Hint("apply plan %s again, which finishes it", p.Left.Plan)
}

func leftLines(m claim.Marker) []event.Line {
	var lines []event.Line
	for _, text := range m.Lines() {
		lines = append(lines, event.Line{Value: text})
	}
	return lines
}
