package walreset

import (
	"fmt"

	"runbook/internal/step"
	"runbook/internal/woodpecker"
)

// newOutputs is what is known before anything is done. What is left alone and
// what was found without metadata does not change any more.
func (r *reset) newOutputs(found *inventory) Outputs {
	out := Outputs{
		Objects:  Objects{Foreign: found.objects.foreign, ForeignSample: append([]string{}, found.objects.sample...)},
		Local:    Local{Path: found.local.dir, Foreign: int64(len(found.local.foreign)), ForeignSample: first(found.local.foreign, sampleSize)},
		Nodes:    Nodes{Known: int64(len(found.nodes.nodes)), SweptTo: found.nodes.sweep, Skipped: append([]SkippedNode{}, found.nodes.skipped...)},
		Warnings: append([]string{}, found.warnings...),
	}
	if r.store != nil {
		out.ObjectPrefix = r.store.Bucket() + "/" + woodpecker.ObjectPrefix(r.root)
	}
	if found.md == nil {
		return out
	}
	out.Prefix = found.md.Keys.Prefix()
	out.LogIDCounter = Counter{Before: found.md.Counter, After: found.md.Counter}
	out.Metadata.Keys, out.Metadata.Foreign = found.md.Total, found.md.Foreign
	for _, l := range found.logs {
		if len(l.entries) > 0 {
			continue
		}
		if l.objects.any() {
			out.Orphans.ObjectDirectories++
		}
		if l.local.Files > 0 {
			out.Orphans.LocalDirectories++
		}
	}
	return out
}

// count adds the metadata of one log.
func (o *Outputs) count(l *log) {
	for _, entry := range l.entries {
		if entry.Parked {
			o.Metadata.ParkedLogs++
		} else {
			o.Metadata.Logs++
		}
		o.Metadata.Segments += entry.Segments
	}
}

// predicted are the outputs of a run, if it finds what was found here.
func (r *reset) predicted(found *inventory) Outputs {
	out := r.newOutputs(found)
	if found.md == nil {
		return out
	}
	out.LogIDCounter.After = found.highestID()
	for _, l := range found.logs {
		out.count(l)
		out.Objects.Removed += l.objects.objects
		out.Objects.Versions += l.objects.versions
		out.Objects.DeleteMarkers += l.objects.markers
		out.Objects.Bytes += l.objects.bytes
		out.Local.Files += l.local.Files
		out.Local.Bytes += l.local.Bytes
	}
	for _, headless := range found.md.Headless {
		out.Metadata.Segments += headless.Segments
	}
	targets, err := r.targets(found)
	if err != nil {
		return out
	}
	for _, t := range targets {
		out.Nodes.Marked += int64(len(t.known))
		out.Nodes.Swept += int64(len(t.sweep))
		out.Nodes.Reclaimed += int64(len(t.known) + len(proof(t.sweep)))
	}
	return out
}

// describe is the preview.
func (r *reset) describe(found *inventory) step.Preview {
	out := r.predicted(found)
	p := step.Preview{Lines: out.lines("to remove"), Warnings: out.Warnings, Outputs: out}
	p.Changes = out.Metadata.Keys+out.Objects.Removed+out.Objects.Versions+out.Objects.DeleteMarkers+
		out.Local.Files+out.Nodes.Marked+out.Nodes.Swept+(out.LogIDCounter.After-out.LogIDCounter.Before) > 0
	return p
}

var _ step.Summarizer = Outputs{}

// Summary is what an operator reads of a finished reset.
func (o Outputs) Summary() []step.Line { return o.lines("removed") }

// lines says the same of a preview and of a run: a tier, its counts, what is left.
func (o Outputs) lines(verb string) []step.Line {
	if o.Prefix == "" {
		return []step.Line{{Subject: "wal", Value: "never used: nothing to empty"}}
	}
	lines := []step.Line{o.metadataLine(verb), o.counterLine()}
	if o.ObjectPrefix != "" {
		lines = append(lines, o.objectsLine(verb))
	} else {
		lines = append(lines, o.localLine(verb))
	}
	if o.Nodes.Known > 0 {
		lines = append(lines, o.nodesLine())
	}
	if n := o.Orphans.ObjectDirectories + o.Orphans.LocalDirectories; n > 0 {
		lines = append(lines, step.Line{Subject: "orphans", Value: fmt.Sprintf("of these, %s that no metadata names", pluralOf(n, "log directory"))})
	}
	return lines
}

func (o Outputs) metadataLine(verb string) step.Line {
	m := o.Metadata
	line := step.Line{Subject: "metadata", Value: fmt.Sprintf("%s: %s, %s, %s, %s in all, at %s",
		verb, pluralOf(m.Logs, "log"), pluralOf(m.ParkedLogs, "parked log"), pluralOf(m.Segments, "segment"), pluralOf(m.Keys, "key"), o.Prefix)}
	if m.Foreign > 0 {
		line.Detail = append(line.Detail, fmt.Sprintf("left: %s there that are not woodpecker's", pluralOf(m.Foreign, "key")))
	}
	return line
}

func (o Outputs) counterLine() step.Line {
	c := o.LogIDCounter
	if c.After > c.Before {
		return step.Line{Subject: "log id counter", Value: fmt.Sprintf("raised from %d to %d", c.Before, c.After)}
	}
	return step.Line{Subject: "log id counter", Value: fmt.Sprintf("%d, kept", c.Before)}
}

func (o Outputs) objectsLine(verb string) step.Line {
	line := step.Line{Subject: "objects", Value: fmt.Sprintf("%s: %s, %s, below %s", verb, pluralOf(o.Objects.Removed, "object"), bytesText(o.Objects.Bytes), o.ObjectPrefix)}
	if o.Objects.Versions+o.Objects.DeleteMarkers > 0 {
		line.Detail = append(line.Detail, fmt.Sprintf("and %s, %s", pluralOf(o.Objects.Versions, "old version"), pluralOf(o.Objects.DeleteMarkers, "delete marker")))
	}
	return withForeign(line, o.Objects.Foreign, o.Objects.ForeignSample, "object")
}

func (o Outputs) localLine(verb string) step.Line {
	line := step.Line{Subject: "local files", Value: fmt.Sprintf("%s: %s, %s, below %s", verb, pluralOf(o.Local.Files, "file"), bytesText(o.Local.Bytes), o.Local.Path)}
	return withForeign(line, o.Local.Foreign, o.Local.ForeignSample, "file")
}

func withForeign(line step.Line, n int64, sample []string, noun string) step.Line {
	if n == 0 {
		return line
	}
	text := fmt.Sprintf("left: %s there that are not woodpecker's:", pluralOf(n, noun))
	if n == 1 {
		text = fmt.Sprintf("left: 1 %s there that is not woodpecker's:", noun)
	}
	line.Detail = append(line.Detail, text)
	for _, name := range sample {
		line.Detail = append(line.Detail, "  "+name)
	}
	if more := n - int64(len(sample)); more > 0 {
		line.Detail = append(line.Detail, fmt.Sprintf("  and %d more", more))
	}
	return line
}

func (o Outputs) nodesLine() step.Line {
	n := o.Nodes
	line := step.Line{Subject: "log-store nodes", Value: fmt.Sprintf("%s; logs marked deleted, summed over them: %d", pluralOf(n.Known, "node"), n.Marked)}
	if n.SweptTo > 0 {
		line.Detail = append(line.Detail, fmt.Sprintf("swept: every log id up to %d on each node (%d more marks), since no call lists the directories that nothing names; one with a higher id would stay", n.SweptTo, n.Swept))
	} else {
		line.Detail = append(line.Detail, "not swept: log directories on their disks that nothing names would stay")
	}
	for _, skipped := range n.Skipped {
		text := fmt.Sprintf("left out: %s (%s)", skipped.Address, skipped.Reason)
		if len(skipped.Logs) > 0 {
			text += "; its disk still holds " + some(skipped.Logs)
		}
		line.Detail = append(line.Detail, text)
	}
	return line
}

func first(items []string, n int) []string {
	return append([]string{}, items[:min(len(items), n)]...)
}
