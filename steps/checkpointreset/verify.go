package checkpointreset

import (
	"context"

	"runbook/internal/fault"
	"runbook/internal/milvus"
	"runbook/internal/step"
)

// checkReset proves positionsReset by reading everything again: nothing that a run
// would touch is left. Where a run repaired some channels only, the others must at
// least name the same WAL, or Milvus would not come up.
func checkReset(ctx context.Context, env *step.Env, in Inputs) error {
	found, err := look(ctx, env, in)
	if err != nil {
		return err
	}
	if err := found.noInstance(); err != nil {
		return err
	}
	if err := found.unreadableKeys(); err != nil {
		return err
	}
	again := "apply the plan with this step"
	for _, family := range rewritten {
		if changes := &found.rewrites[family].changes; changes.n > 0 {
			return fault.Refuse("positions.not-reset", "%d of %d %s are not at the earliest position of %s: %s",
				changes.n, found.rewrites[family].found, family, in.TargetWal, changes.text()).Hint("%s", again)
		}
	}
	for _, family := range removedFamilies {
		if left := found.removed[family]; left.n > 0 {
			return fault.Refuse("positions.not-reset", "%d %s are left: %s", left.n, family, left.text()).Hint("%s", again)
		}
	}
	if found.setPin {
		return fault.Refuse("positions.not-reset", "mq.type is pinned to %q, not to %s", found.pin.Value, in.TargetWal).At(found.pin.Key).Hint("%s", again)
	}
	return found.otherWAL()
}

// otherWAL refuses checkpoints, in scope or not, that name a WAL that is not the target.
func (f *findings) otherWAL() error {
	for _, counts := range []milvus.WALCounts{f.channels, f.consumes} {
		for wal := range counts {
			if wal != f.target.WAL {
				return fault.Refuse("positions.split", "checkpoints name %s besides %s: channel checkpoints %s; consume checkpoints %s",
					wal, f.in.TargetWal, f.channels, f.consumes).
					Hint("apply the step without pchannels: the whole instance must name one WAL")
			}
		}
	}
	return nil
}
