package checkpointreset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"runbook/internal/fault"
	"runbook/internal/milvus"
)

// refusal says why nothing may be written, or nil. Everything that is in the way
// is named at once. The gates in the order in which they make sense of each other:
// is this an instance at all, is its layout understood, is its work finished.
func (f *findings) refusal() error {
	if err := f.noInstance(); err != nil {
		return err // whatever else was found speaks of another place
	}
	return errors.Join(
		f.unknownPchannels(),
		f.newerLayout(),
		f.replicated(),
		f.pinnedTwice(),
		f.unfinishedBroadcasts(),
		f.unflushedSegments(),
		f.unreadableKeys(),
	)
}

func (f *findings) noInstance() error {
	if store := f.overrides.Metastore(); store != "" && store != "etcd" {
		return fault.Refuse("positions.metastore", "metastore.type is %s: the positions are not in etcd", store).At(f.root+"/config").
			Hint("reset them with a tool that writes to %s; this step only writes to etcd", store)
	}
	if !f.proof {
		return fault.Refuse("positions.no-instance", "no milvus has ever run under this root").At(milvus.SessionIDKey(f.meta)).
			Hint("set instance.etcd.rootPath and metaSubPath to etcd.rootPath and etcd.metaSubPath of this milvus")
	}
	if len(f.pchannels) == 0 {
		return fault.Refuse("positions.no-channels", "no physical channel is listed here").At(milvus.PChannelMetas.Prefix(f.meta)).
			Hint("if this milvus is older than 2.6, upgrade it first: its positions are kept in another form").
			Hint("if metastore.type is tikv, this step cannot help: it only writes to etcd")
	}
	return nil
}

func (f *findings) unknownPchannels() error {
	if len(f.unknownChannels) == 0 {
		return nil
	}
	return fault.Refuse("positions.unknown-pchannel", "no such physical channel: %s", strings.Join(f.unknownChannels, ", ")).At("pchannels").
		Hint("name some of %s", strings.Join(f.pchannels, ", "))
}

func (f *findings) newerLayout() error {
	if f.branches.n == 0 {
		return nil
	}
	return fault.Refuse("positions.newer-layout", "positions may be kept in places that this version does not know: %s", f.branches.text()).
		At(milvus.WALPrefix(f.meta)).
		Hint("use a version of runbook that knows the milvus that wrote this")
}

func (f *findings) replicated() error {
	if f.replicating.n == 0 {
		return nil
	}
	return fault.Refuse("positions.replicating", "%d channels are replicated to another cluster, from positions in this WAL: %s", f.replicating.n, f.replicating.text()).
		Hint("end the replication first; after the switch, set it up anew")
}

func (f *findings) pinnedTwice() error {
	for _, alias := range f.overrides.PinAliases(f.root) {
		if alias.Value == f.in.TargetWal {
			continue
		}
		return fault.Refuse("positions.pin-alias", "mq.type is set to %q here by hand, beside %s", alias.Value, milvus.PinKey(f.root)).At(alias.Key).
			Hint("remove it: etcdctl del %s", alias.Key)
	}
	return nil
}

func (f *findings) unfinishedBroadcasts() error {
	if f.broadcasts.n == 0 {
		return nil
	}
	return fault.Refuse("positions.broadcast", "%d broadcasts are not finished; what is left of them is in the old WAL only: %s", f.broadcasts.n, f.broadcasts.text()).
		Hint("start milvus on the WAL that it has used so far, wait until its DDL operations are done, stop it and apply again")
}

func (f *findings) unflushedSegments() error {
	if f.unflushed.n == 0 || f.in.AllowGrowing {
		return nil
	}
	return fault.Refuse("positions.unflushed", "%d segments were not flushed; their rows may be in the old WAL only: %s", f.unflushed.n, f.unflushed.text()).
		Hint("start milvus on the WAL that it has used so far, flush every collection, stop it gracefully and apply again").
		Hint("if losing these rows is acceptable, set allowGrowing: true")
}

func (f *findings) unreadableKeys() error {
	if f.unreadable.n == 0 || f.in.LeaveUnreadable {
		return nil
	}
	return fault.Refuse("positions.unreadable", "%d keys cannot be read, and may hold positions: %s", f.unreadable.n, f.unreadable.text()).
		Hint("repair or remove them: milvus reads them at its next start too").
		Hint("to leave them as they are, set leaveUnreadable: true")
}

// warnings are what stands in nobody's way and should be known all the same.
func (f *findings) warnings() []string {
	var w []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	add(f.split() != "", "%s", f.split())
	add(f.unflushed.n > 0, "%d segments were not flushed; what only the old WAL holds of them is given up: %s", f.unflushed.n, f.unflushed.text())
	add(f.unreadable.n > 0, "%d keys cannot be read and are left as they are: %s", f.unreadable.n, f.unreadable.text())
	add(f.alterWAL.n > 0, "an online switch of the WAL was under way on %s: it is cancelled", f.alterWAL.text())
	add(f.importing.n > 0, "%d segments are of a bulk insert that has not completed: %s", f.importing.n, f.importing.text())
	add(f.bothKeys.n > 0, "%d collections exist under their legacy key too, both are rewritten: %s", f.bothKeys.n, f.bothKeys.text())
	add(len(f.unlisted) > 0 && f.changes() > 0, "channels with a checkpoint that streamingcoord does not list, rewritten all the same: %s", strings.Join(f.unlisted, ", "))
	add(f.replicateConfig, "a replication is configured: its acknowledged positions are in the old WAL (%s)", milvus.ReplicateConfigurationKey(f.meta))
	add(f.watches > 0, "%d keys that milvus 2.5 left are kept as they are; 2.6 does not read them (%s)", f.watches, milvus.ChannelWatchPrefix(f.meta))
	add(f.pin != nil && len(f.in.Pchannels) > 0 && f.pin.Value != f.in.TargetWal,
		"mq.type stays %q in etcd, as only some channels are repaired; milvus will not start before it is %s", pinValue(f.pin), f.in.TargetWal)
	return w
}

func pinValue(pin *milvus.Override) string {
	if pin == nil {
		return ""
	}
	return pin.Value
}

// split says that an earlier reset stopped half-way, as far as that can be seen:
// the two kinds of checkpoint name different WALs, or collections begin at the
// target while every checkpoint names another WAL. Positions that name no WAL
// agree with any.
func (f *findings) split() string {
	channels, consumes := f.channels.Names(), f.consumes.Names()
	both := slices.Concat(channels, consumes)
	slices.Sort(both)
	switch {
	case len(slices.Compact(both)) > 1:
		return fmt.Sprintf("an earlier reset or switch stopped half-way: channel checkpoints name %s, consume checkpoints name %s",
			orNone(channels), orNone(consumes))
	case f.begunCollections() && len(both) > 0 && !slices.Contains(both, f.in.TargetWal):
		return fmt.Sprintf("an earlier reset may have stopped half-way: %d of %d collections begin at %s already, while checkpoints name %s",
			f.rewrites[milvus.Collections].found-f.rewrites[milvus.Collections].changes.n, f.rewrites[milvus.Collections].found, f.in.TargetWal, orNone(channels))
	}
	return ""
}

func (f *findings) begunCollections() bool {
	tally := f.rewrites[milvus.Collections]
	return tally.found > tally.changes.n
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}
