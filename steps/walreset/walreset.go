// Package walreset is the step that empties a woodpecker WAL on all three tiers
// where its data lies: metadata in etcd, objects in the store, files on the
// disks of log-store nodes. The files are in the order of the algorithm:
// inventory, counter, nodes, objects, clear, verify. Layouts and protocols are
// internal/woodpecker's and internal/objectstore's business.
package walreset

import (
	"context"
	"time"

	"runbook/internal/fault"
	"runbook/internal/plan"
	"runbook/internal/step"
)

// Inputs of resetWal.
type Inputs struct {
	WhenNoWAL            string        `json:"whenNoWal" doc:"what to do when no woodpecker metadata exists: refuse, or verify that this instance never used woodpecker" default:"refuse" enum:"refuse,verify"`
	RaiseCounter         bool          `json:"raiseCounter" doc:"raise the log id counter to the highest id in use when it is lower (it is never lowered)" default:"false"`
	SkipUnreachableNodes bool          `json:"skipUnreachableNodes" doc:"go on without log-store nodes that do not answer; what is left on them is reported" default:"false"`
	AcceptNoObjects      bool          `json:"acceptNoObjects" doc:"go on although compacted segments have no object under objectStorage.rootPath, because the objects are lost" default:"false"`
	NodeSweep            string        `json:"nodeSweep" doc:"mark every log id up to the counter on every node, which also removes directories that nothing names; auto: up to 100000 ids" default:"auto" enum:"auto,always,never"`
	AttemptTimeout       time.Duration `json:"attemptTimeout" doc:"longest time for one request to etcd, the object store or a node" default:"10s"`
	ReclaimTimeout       time.Duration `json:"reclaimTimeout" doc:"longest time to wait until the nodes have removed their files" default:"5m"`
	Parallel             int           `json:"parallel" doc:"requests in flight on each tier" default:"8"`
}

// Outputs of resetWal. In a dry run the counts are what a run would remove.
type Outputs struct {
	Prefix       string   `json:"prefix" doc:"where woodpecker's metadata lies in etcd; empty when there is none"`
	ObjectPrefix string   `json:"objectPrefix" doc:"bucket and prefix of woodpecker's objects; empty with storage type local"`
	LogIDCounter Counter  `json:"logIdCounter" doc:"the id of the newest log ever created"`
	Metadata     Metadata `json:"metadata" doc:"removed from etcd"`
	Objects      Objects  `json:"objects" doc:"removed from the object store, and left in it"`
	Nodes        Nodes    `json:"nodes" doc:"done on the log-store nodes"`
	Local        Local    `json:"local" doc:"removed from the local path; storage type local only"`
	Orphans      Orphans  `json:"orphans" doc:"data removed that no metadata named"`
	Warnings     []string `json:"warnings" doc:"what an operator should know although the step succeeded"`
}

// Counter is the log id counter before and after. It never goes down.
type Counter struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Metadata counts what etcd held of the WAL.
type Metadata struct {
	Logs       int64 `json:"logs" doc:"live logs"`
	ParkedLogs int64 `json:"parkedLogs" doc:"logs deleted earlier whose metadata was kept"`
	Segments   int64 `json:"segments" doc:"segments of live and parked logs"`
	Keys       int64 `json:"keys" doc:"etcd keys in all, without the four instance keys"`
	Foreign    int64 `json:"foreign" doc:"keys under the prefix that are not woodpecker's; left"`
}

// Objects counts what the object store held of the WAL.
type Objects struct {
	Removed       int64    `json:"removed" doc:"objects"`
	Versions      int64    `json:"versions" doc:"noncurrent versions"`
	DeleteMarkers int64    `json:"deleteMarkers" doc:"delete markers"`
	Bytes         int64    `json:"bytes" doc:"bytes of objects and noncurrent versions"`
	Foreign       int64    `json:"foreign" doc:"objects under the prefix that do not match the layout; left"`
	ForeignSample []string `json:"foreignSample" doc:"some of their names"`
}

// Nodes counts what was done on log-store nodes. A log on a node is one unit.
type Nodes struct {
	Known     int64         `json:"known" doc:"nodes known from the metadata and the membership"`
	Marked    int64         `json:"marked" doc:"known logs marked deleted, summed over nodes"`
	Swept     int64         `json:"swept" doc:"other log ids marked, summed over nodes"`
	SweptTo   int64         `json:"sweptTo" doc:"highest log id marked on every node; 0: only known logs were"`
	Reclaimed int64         `json:"reclaimed" doc:"logs and ids whose removal a node confirmed, summed over nodes"`
	Skipped   []SkippedNode `json:"skipped" doc:"nodes that did not answer and were left out"`
}

// SkippedNode is a node whose disk still holds what it held.
type SkippedNode struct {
	Address string   `json:"address"`
	Reason  string   `json:"reason"`
	Logs    []string `json:"logs" doc:"logs whose segments name this node"`
}

// Local counts what the local path held of the WAL.
type Local struct {
	Path          string   `json:"path" doc:"directory of the logs"`
	Files         int64    `json:"files"`
	Bytes         int64    `json:"bytes"`
	Foreign       int64    `json:"foreign" doc:"files that do not match the layout; left"`
	ForeignSample []string `json:"foreignSample"`
}

// Orphans counts data that no metadata named.
type Orphans struct {
	ObjectDirectories int64 `json:"objectDirectories" doc:"log directories in the object store"`
	LocalDirectories  int64 `json:"localDirectories" doc:"log directories under the local path"`
}

// Type describes the step to the plan language and the runner.
func Type() step.Type {
	return step.Define(step.Spec[Inputs, Outputs]{
		Name:     "resetWal",
		Summary:  "empty the woodpecker WAL in etcd, in the object store and on the log-store nodes",
		Requires: []step.Requirement[Inputs]{{Fact: plan.MilvusStopped}},
		Provides: []step.Provision[Inputs]{{Fact: plan.WALEmpty, Check: checkEmpty}},
		Preview:  preview,
		Run:      run,

		Destructive: true,
	})
}

func preview(ctx context.Context, env *step.Env, in Inputs) (step.Preview, error) {
	r, err := open(ctx, env, in)
	if err != nil {
		return step.Preview{}, fault.Refusal(err)
	}
	found, err := r.look(ctx)
	if err != nil {
		return step.Preview{}, fault.Refusal(err)
	}
	return r.describe(found), nil
}

func run(ctx context.Context, env *step.Env, in Inputs) (Outputs, error) {
	r, err := open(ctx, env, in)
	if err != nil {
		return Outputs{}, err
	}
	found, err := r.look(ctx)
	if err != nil {
		return Outputs{}, err
	}
	for _, warning := range found.warnings {
		env.Report.Warn("%s", warning)
	}
	out := r.newOutputs(found)
	if found.md == nil {
		return out, nil // verified: this instance never used woodpecker
	}
	return out, r.empty(ctx, found, &out)
}

// empty does what look has found possible. The order is what keeps every log
// findable until it is gone: its nodes first, then its objects, its metadata last.
func (r *reset) empty(ctx context.Context, found *inventory, out *Outputs) error {
	if err := r.raiseCounter(ctx, found, out); err != nil {
		return err
	}
	if err := r.env.Claim.Begin(ctx); err != nil {
		return err
	}
	marked, err := r.mark(ctx, found, out)
	if err != nil {
		return err
	}
	if err := r.stillStopped(ctx); err != nil {
		return err
	}
	if err := r.deleteFiles(ctx, found, out); err != nil {
		return err
	}
	if err := r.waitForReclaim(ctx, found, marked, out); err != nil {
		return err
	}
	if err := r.lookAgain(ctx, found); err != nil {
		return err
	}
	if err := r.clearLogs(ctx, found, out); err != nil {
		return err
	}
	if err := found.heldBack(); err != nil {
		return err
	}
	if err := r.clearInstance(ctx, found, out); err != nil {
		return err
	}
	return r.nothingWritten(ctx, found, marked)
}
