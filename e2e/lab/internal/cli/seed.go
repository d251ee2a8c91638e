package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/milvus"
	"runbook/e2e/lab/internal/milvusfixture"
	"runbook/e2e/lab/internal/seed"
	"runbook/e2e/lab/internal/state"
)

type seedFlags struct {
	target  seed.Target
	wal     seed.WAL
	plan    seed.Plan
	only    bool
	counter int64
	milvus  bool
	spec    milvusfixture.Spec
	second  string
	session string
	ttl     time.Duration
	noLease bool
}

func (a *app) seedCommand() *cobra.Command {
	var s seedFlags
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "fill the lab with a stopped Milvus instance",
		Long: "Write one instance through the real woodpecker client, with data on all three\n" +
			"tiers, and whatever residue or damage the switches ask for. With --only nothing\n" +
			"is written but what the switches ask for, on top of what is there.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.addMilvus()
			if cmd.Flags().Changed("counter") {
				s.plan.Counter = &s.counter
			}
			return a.seed(cmd, &s)
		},
	}
	f := cmd.Flags()
	addInstanceFlags(f, &s.target)
	f.IntVar(&s.wal.Logs, "logs", 16, "logs to write")
	f.IntVar(&s.wal.Segments, "segments", 2, "segments of each log")
	f.IntVar(&s.wal.Objects, "objects", 0, "objects to add to each segment")
	f.IntVar(&s.wal.Bytes, "bytes", 256, "size of each entry")
	f.BoolVar(&s.wal.Compact, "compact", true, "move segments to the object store too")
	f.BoolVar(&s.only, "only", false, "write no logs, only what the switches below ask for")
	f.BoolVar(&s.plan.BucketLock, "bucket-lock", false, "create the bucket with object lock, for objects hold")
	f.BoolVar(&s.milvus, "milvus", false, "everything that a stopped Milvus leaves in etcd; the flags of verify-positions say how it looks")
	addMilvusFlags(f, &s.spec)
	f.StringVar(&s.second, "second-instance", "", "a second Milvus under this `ROOT` in the same etcd")
	f.IntVar(&s.plan.Parked, "parked", 0, "write and delete `N` extra logs: their metadata is parked, their objects stay")
	f.IntVar(&s.plan.OrphanObjects, "orphan-objects", 0, "object directories of `N` ids that no metadata names")
	f.Int64SliceVar(&s.plan.OrphanNodeDirs, "orphan-node-dirs", nil, "log directories of these `IDs` on node disks that nothing names")
	f.IntSliceVar(&s.plan.OnNodes, "on-nodes", []int{1, 2, 3}, "nodes for --orphan-node-dirs")
	f.BoolVar(&s.plan.Foreign, "foreign", false, "objects below wp/ that are not woodpecker's, and directory placeholders")
	f.IntVar(&s.plan.NoQuorum, "no-quorum", 0, "strip the quorum from the segments of the first `N` logs (2 when N is left out)")
	f.Lookup("no-quorum").NoOptDefVal = strconv.Itoa(2)
	f.Int64Var(&s.counter, "counter", 0, "overwrite the log id counter")
	f.StringSliceVar(&s.plan.DropInstanceKeys, "drop-instance-keys", nil, "delete some of instance,version,logidgen,quorumidgen")
	f.StringVar(&s.session, "session", "", "register a Milvus session `ROLE[-ID]` that the lab keeps alive")
	f.DurationVar(&s.ttl, "ttl", 30*time.Second, "lease time of --session")
	f.BoolVar(&s.noLease, "session-no-lease", false, "register --session without a lease")
	return cmd
}

// addMilvus turns the flags into the instances to make.
func (s *seedFlags) addMilvus() {
	if s.milvus {
		s.spec.Root = s.target.Root
		s.plan.Milvus = append(s.plan.Milvus, s.spec)
	}
	if s.second != "" {
		other := milvusfixture.Default()
		other.Root = s.second
		s.plan.Milvus = append(s.plan.Milvus, other)
	}
}

func (a *app) seed(cmd *cobra.Command, s *seedFlags) error {
	if s.wal.Logs < 0 || s.wal.Segments < 0 || s.wal.Objects < 0 || s.wal.Bytes < 1 {
		return usagef("--logs, --segments and --objects must not be negative, --bytes must be positive")
	}
	lab, err := a.running()
	if err != nil {
		return err
	}
	started := time.Now()
	ctx := cmd.Context()
	seeder, err := seed.New(ctx, lab, s.target, say(cmd))
	if err != nil {
		return err
	}
	defer seeder.Close()
	if !s.only {
		s.plan.WAL = &s.wal
	}
	if err := seeder.Run(ctx, s.plan); err != nil {
		return err
	}
	if s.session != "" {
		if err := startSession(cmd, lab, s.session, control.Session{Root: s.target.Root, TTL: s.ttl, NoLease: s.noLease}); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%d logs of %d segments", s.wal.Logs, s.wal.Segments)
	if s.only {
		what = "residue"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "seeded %s at %s and s3://%s/%s in %s\n", what,
		s.target.EtcdPrefix(), s.target.Bucket, s.target.WALRoot(), time.Since(started).Round(10*time.Millisecond))
	return nil
}

func startSession(cmd *cobra.Command, lab *state.Lab, name string, s control.Session) error {
	role, id, err := milvus.SplitSessionName(name)
	if err != nil {
		return usageError{err}
	}
	s.Role, s.ID = role, id
	key, err := control.NewClient(lab.Control).StartSession(cmd.Context(), s)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "session %s\n", key)
	return nil
}
