package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/failpoint"
)

// keptPredecessors bounds Marker.Continues.
const keptPredecessors = 10

// Stage is where a run is.
type Stage struct {
	Step  string   // id of the step
	Doing string   // what the step does, in words
	Owes  []string // facts that the run has put at stake and not yet proved again
}

// Marker says that an instance is half done: something was begun that makes it
// unfit to start until the facts owed are verified.
type Marker struct {
	Owner
	Continues []string  `json:"continues,omitempty"` // earlier runs that left the instance half done, oldest first
	Step      string    `json:"step"`
	Doing     string    `json:"doing"`
	Owes      []string  `json:"owes"`
	Updated   time.Time `json:"updated"`

	// Raw is the value when it could not be decoded; it is a marker all the same.
	Raw string `json:"-"`
}

// Lines says what was left, for people.
func (m Marker) Lines() []string {
	if m.Raw != "" {
		return []string{"left by an unknown run, in a form this version cannot read: " + m.Raw}
	}
	lines := []string{
		"left by " + m.Owner.String(),
		fmt.Sprintf("in step %s: %s", m.Step, m.Doing),
		"last heard of at " + m.Updated.UTC().Format(time.RFC3339),
		"still to be proved: " + strings.Join(m.Owes, ", "),
	}
	if len(m.Continues) > 0 {
		lines = append(lines, "which continued "+strings.Join(m.Continues, ", "))
	}
	return lines
}

func (m Marker) encode() string {
	data, _ := json.Marshal(m) // strings, numbers and times only
	return string(data)
}

func decodeMarker(value []byte) *Marker {
	var m Marker
	if err := json.Unmarshal(value, &m); err != nil || m.RunID == "" {
		return &Marker{Raw: string(value)}
	}
	return &m
}

// Enter records where the run is, in the lock and, once begun, in the marker.
// It fails when the lock is lost. A Milvus that runs does not matter here.
func (c *Claim) Enter(ctx context.Context, stage Stage) error {
	if err := c.enterState(ctx); err != nil {
		return err
	}
	defer c.leaveState()
	c.stage = stage
	ops := []clientv3.Op{clientv3.OpPut(c.place.lockKey(), c.holder().encode(), clientv3.WithLease(c.lock.lease))}
	marker := c.marker
	if marker != nil {
		marker = c.stamp(*marker)
		ops = append(ops, clientv3.OpPut(c.place.markerKey(), marker.encode()))
	}
	if err := c.insist(ctx, false, ops...); err != nil {
		return err
	}
	c.marker = marker
	failpoint.Hit("claim/stage-recorded")
	return nil
}

// Finish removes the marker, whoever wrote it: call it when every fact at stake
// is verified. Without a marker it does nothing.
func (c *Claim) Finish(ctx context.Context) error {
	if err := c.enterState(ctx); err != nil {
		return err
	}
	defer c.leaveState()
	if err := c.insist(ctx, false, clientv3.OpDelete(c.place.markerKey())); err != nil {
		return err
	}
	c.marker = nil
	failpoint.Hit("claim/marker-removed")
	return nil
}

// newMarker continues the marker that an earlier run may have left.
func (c *Claim) newMarker(ctx context.Context) (*Marker, error) {
	var left *Marker
	err := patience().Do(ctx, func(ctx context.Context) error {
		var err error
		left, _, err = Read(ctx, c.client, c.place.Root)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := Marker{Owner: c.owner}
	if left != nil && left.RunID != c.owner.RunID {
		m.Continues = append(slices.Clone(left.Continues), left.RunID)
		if extra := len(m.Continues) - keptPredecessors; extra > 0 {
			m.Continues = m.Continues[extra:]
		}
	}
	return c.stamp(m), nil
}

func (c *Claim) stamp(m Marker) *Marker {
	m.Step, m.Doing, m.Owes = c.stage.Step, c.stage.Doing, c.stage.Owes
	m.Updated = time.Now().UTC()
	return &m
}
