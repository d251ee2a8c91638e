// Package checkpointreset is the step that sets every position which a stopped
// Milvus has stored to the earliest one of a WAL, and removes what such a change
// makes stale. The files are in the order of the algorithm: survey (with families
// and what it finds, findings), gates, image, write, verify, summary; undo goes
// back. How keys and positions are laid out is internal/milvus's business.
package checkpointreset

import (
	"context"

	"runbook/internal/milvus"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// Inputs of resetCheckpoint.
type Inputs struct {
	TargetWal       string   `json:"targetWal" doc:"the WAL that Milvus will use: every position becomes its earliest" enum:"woodpecker,pulsar,kafka,rocksmq" required:"true"`
	AllowGrowing    bool     `json:"allowGrowing" doc:"go on although segments were never flushed: their rows exist in the old WAL only and are lost" default:"false"`
	LeaveUnreadable bool     `json:"leaveUnreadable" doc:"go on although keys cannot be read: they are listed and left as they are" default:"false"`
	Pchannels       []string `json:"pchannels" doc:"repair these physical channels only; none given: the whole instance"`
}

// Outputs of resetCheckpoint. In a dry run the counts are what a run would do.
type Outputs struct {
	TargetWal          string  `json:"targetWal" doc:"the WAL that positions name now"`
	Collections        Rewrite `json:"collections" doc:"start positions of collections"`
	Segments           Rewrite `json:"segments" doc:"start and end positions of segments"`
	ChannelCheckpoints Rewrite `json:"channelCheckpoints" doc:"where each virtual channel is consumed from"`
	ConsumeCheckpoints Rewrite `json:"consumeCheckpoints" doc:"where each physical channel is recovered from"`
	SegmentAssignments int64   `json:"segmentAssignments" doc:"removed: what streaming nodes knew of open segments"`
	QueryTargets       int64   `json:"queryTargets" doc:"removed: what query nodes were to load up to the old positions"`
	Pin                Pin     `json:"pin" doc:"mq.type as Milvus keeps it in etcd"`
	DroppedChannels    int64   `json:"droppedChannels" doc:"markers of dropped channels; left"`
	Tombstones         int64   `json:"tombstones" doc:"values that say dropped; left"`
	Unreadable         int64   `json:"unreadable" doc:"keys that could not be read; left"`
	Revision           int64   `json:"revision" doc:"etcd's revision after the last write, or of the reading when nothing was written"`
	BeforeImage        string  `json:"beforeImage" doc:"file that holds every key as it was; empty when nothing was written"`
}

// Rewrite counts one family of keys.
type Rewrite struct {
	Found     int64 `json:"found" doc:"keys with a position in them"`
	Rewritten int64 `json:"rewritten" doc:"of these, the ones whose position was another"`
}

// Pin is the setting {rootPath}/config/mqtype; both are empty where there is none.
type Pin struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

const stepName = "resetCheckpoint"

// Type describes the step to the plan language and the runner.
func Type() step.Type {
	return step.Define(step.Spec[Inputs, Outputs]{
		Name:    stepName,
		Summary: "set every position that milvus has stored to the earliest one of a WAL",
		Requires: []step.Requirement[Inputs]{
			{Fact: plan.MilvusStopped},
			{
				Fact: plan.WALEmpty, When: "targetWal is woodpecker",
				If: func(in Inputs) bool { return in.TargetWal == milvus.Woodpecker.String() },
			},
		},
		Provides:    []step.Provision[Inputs]{{Fact: plan.PositionsReset, Check: checkReset}},
		Preview:     preview,
		Run:         run,
		Destructive: true,
		Undo:        &step.Undo{Preview: previewUndo, Run: runUndo},
	})
}

func preview(ctx context.Context, env *step.Env, in Inputs) (step.Preview, error) {
	found, err := look(ctx, env, in)
	if err != nil {
		return step.Preview{}, err
	}
	if err := found.refusal(); err != nil {
		return step.Preview{}, err
	}
	return found.preview(), nil
}

func run(ctx context.Context, env *step.Env, in Inputs) (Outputs, error) {
	image, found, err := takeImage(ctx, env, in)
	if err != nil {
		return Outputs{}, err
	}
	for _, warning := range found.warnings() {
		env.Report.Warn("%s", warning)
	}
	out := found.outputs()
	if image == nil {
		return out, nil
	}
	out.BeforeImage = image.Path
	out.Revision, err = rewrite(ctx, env, found, image)
	return out, err
}
