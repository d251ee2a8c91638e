package checkpointreset

import (
	"fmt"
	"strings"

	"runbook/internal/milvus"
	"runbook/internal/step"
)

// pinGroup is what people call the setting {rootPath}/config/mqtype.
const pinGroup = "mq.type in etcd"

// preview shows what was found and what a run would write, family by family.
func (f *findings) preview() step.Preview {
	lines := []step.Line{
		{Subject: "target", Value: "the earliest position of " + f.in.TargetWal},
		{Subject: "positions now", Value: fmt.Sprintf("channel checkpoints name %s; consume checkpoints name %s", f.channels, f.consumes)},
	}
	for _, family := range rewritten {
		tally := f.rewrites[family]
		lines = append(lines, step.Line{
			Subject: family.String(), Detail: tally.changes.lines(),
			Value: fmt.Sprintf("%d of %d to rewrite", tally.changes.n, tally.found),
		})
	}
	for _, family := range removedFamilies {
		lines = append(lines, step.Line{
			Subject: family.String(), Detail: f.removed[family].lines(),
			Value: fmt.Sprintf("%d to remove", f.removed[family].n),
		})
	}
	lines = append(lines, step.Line{Subject: pinGroup, Value: f.pinText()})
	if left := f.leftText(); left != "" {
		lines = append(lines, step.Line{Subject: "left alone", Value: left})
	}
	return step.Preview{Lines: lines, Warnings: f.warnings(), Changes: f.changes() > 0, Outputs: f.outputs()}
}

// changes is how many keys a run would touch.
func (f *findings) changes() int64 {
	var n int64
	for _, tally := range f.rewrites {
		n += tally.changes.n
	}
	for _, removed := range f.removed {
		n += removed.n
	}
	if f.setPin {
		n++
	}
	return n
}

func (f *findings) pinText() string {
	switch {
	case f.pin == nil:
		return "not set: milvus takes it from its configuration files"
	case f.setPin:
		return fmt.Sprintf("%s, to become %s", f.pin.Value, f.in.TargetWal)
	}
	return f.pin.Value
}

// leftText counts what looks like a position, or like part of one, and is not touched.
func (f *findings) leftText() string {
	var parts []string
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", what, n))
		}
	}
	add(f.dropped, "markers of dropped channels")
	add(f.tombstones, "tombstones")
	add(f.noPosition, "collections and segments without a position")
	add(int64(len(f.withoutCheckpoint)), "physical channels that were never consumed")
	add(f.compactions, "compaction tasks, whose position is not used")
	add(f.unreadable.n, "unreadable keys")
	return strings.Join(parts, ", ")
}

func (f *findings) outputs() Outputs {
	rewrite := func(family milvus.Family) Rewrite {
		return Rewrite{Found: f.rewrites[family].found, Rewritten: f.rewrites[family].changes.n}
	}
	out := Outputs{
		TargetWal:          f.in.TargetWal,
		Collections:        rewrite(milvus.Collections),
		Segments:           rewrite(milvus.Segments),
		ChannelCheckpoints: rewrite(milvus.ChannelCheckpoints),
		ConsumeCheckpoints: rewrite(milvus.ConsumeCheckpoints),
		SegmentAssignments: f.removed[milvus.SegmentAssignments].n,
		QueryTargets:       f.removed[milvus.QueryTargets].n,
		Pin:                Pin{Before: pinValue(f.pin), After: pinValue(f.pin)},
		DroppedChannels:    f.dropped,
		Tombstones:         f.tombstones,
		Unreadable:         f.unreadable.n,
		Revision:           f.revision,
	}
	if f.setPin {
		out.Pin.After = f.in.TargetWal
	}
	return out
}

// Summary says what a finished run did.
func (o Outputs) Summary() []step.Line {
	row := func(family milvus.Family, r Rewrite) step.Line {
		return step.Line{Subject: family.String(), Value: fmt.Sprintf("%d of %d rewritten", r.Rewritten, r.Found)}
	}
	lines := []step.Line{
		{Subject: "target", Value: "the earliest position of " + o.TargetWal},
		row(milvus.Collections, o.Collections),
		row(milvus.Segments, o.Segments),
		row(milvus.ChannelCheckpoints, o.ChannelCheckpoints),
		row(milvus.ConsumeCheckpoints, o.ConsumeCheckpoints),
		{Subject: milvus.SegmentAssignments.String(), Value: fmt.Sprintf("%d removed", o.SegmentAssignments)},
		{Subject: milvus.QueryTargets.String(), Value: fmt.Sprintf("%d removed", o.QueryTargets)},
		{Subject: pinGroup, Value: o.Pin.String()},
	}
	if o.BeforeImage != "" {
		lines = append(lines, step.Line{Subject: "as it was", Value: o.BeforeImage})
	}
	return lines
}

// String says how the setting changed.
func (p Pin) String() string {
	switch {
	case p.After == "":
		return "not set"
	case p.Before == p.After:
		return p.After + ", as before"
	}
	return fmt.Sprintf("%s, was %s", p.After, p.Before)
}
