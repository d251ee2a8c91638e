package walreset

import (
	"context"
	"errors"
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/milvus"
	"runbook/internal/objectstore"
	"runbook/internal/retry"
	"runbook/internal/step"
	"runbook/internal/woodpecker"
)

// Storage types, as in Milvus's woodpecker.storage.type: where segments lie.
const (
	onNodes   = "service" // on log-store nodes, and compacted in the object store
	onObjects = "minio"   // in the object store, written by Milvus itself
	onDisk    = "local"   // in files, written by Milvus itself
)

// etcdAttempts bounds how often one write is sent while etcd has no leader.
const etcdAttempts = 5

// reset is one use of the step: what it was told, and the way to each tier.
type reset struct {
	env      *step.Env
	in       Inputs
	settings instance.Settings
	etcd     *clientv3.Client
	store    *objectstore.Store // nil with storage type local
	space    woodpecker.Space   // storage type service only
	root     string             // woodpecker's minio.rootPath, to the letter
	warnings []string           // about the settings
}

func open(ctx context.Context, env *step.Env, in Inputs) (*reset, error) {
	r := &reset{env: env, in: in, settings: env.Instance.Settings, root: env.Instance.Settings.WALObjectRoot()}
	var err error
	if r.etcd, err = env.Instance.Etcd(ctx); err != nil {
		return nil, err
	}
	if kind := r.settings.WAL.Type; kind != "woodpecker" {
		return nil, r.otherWAL(ctx, kind)
	}
	switch storage := r.settings.WAL.StorageType; storage {
	case onNodes:
		err = r.openSpace()
	case onObjects:
	case onDisk:
		return r, r.needLocalPath()
	default:
		err = fault.Refuse("wal.storage-type", "unknown storage type %q", storage).At("instance.wal.storageType").
			Hint("set it to milvus's woodpecker.storage.type: service, minio or local")
	}
	if err != nil {
		return nil, err
	}
	store, err := env.Instance.Objects(ctx)
	if err != nil {
		return nil, err
	}
	if r.store, err = store.With(retry.Policy{Attempts: objectstore.DefaultRetry.Attempts, Attempt: in.AttemptTimeout}); err != nil {
		return nil, err
	}
	return r, r.settleRoot(ctx)
}

// otherWAL refuses a WAL that is not woodpecker's, and shows beside what the plan
// says what there is: a configuration may name a WAL that the instance left long ago.
func (r *reset) otherWAL(ctx context.Context, kind string) error {
	refusal := fault.Refuse("wal.type", "resetWal empties a woodpecker WAL and cannot empty one of %s", kind).At("instance.wal.type")
	survey, err := woodpecker.Look(ctx, r.etcd, r.settings.Etcd.RootPath, woodpecker.Auto)
	if err == nil && len(survey.Sites) > 0 {
		refusal.Hint("set instance.wal.type: woodpecker if that is what milvus runs on: its metadata lies at %s", survey.Sites[0].Prefix)
	}
	return refusal.Hint("empty %s with its own tools, or remove this step: positions can be reset to %s's earliest without it", kind, kind)
}

// openSpace makes sure that what is sent to nodes can only name this instance.
func (r *reset) openSpace() error {
	var err error
	r.space, err = woodpecker.NewSpace(r.settings.ObjectStorage.Bucket, r.root)
	if err == nil {
		return nil
	}
	refusal := fault.Refuse("wal.object-root", "the object root is not usable with storage type service: %s", err).
		At("instance.objectStorage.rootPath")
	if clean := strings.Trim(path.Clean(r.settings.ObjectStorage.RootPath), "/."); clean != "" {
		refusal.Hint("set it to %s: that is what milvus makes of its minio.rootPath; woodpecker's /wp is added", clean)
	} else {
		refusal.Hint("set it to milvus's minio.rootPath: woodpecker's service mode does not run with an empty one")
	}
	return refusal.Hint("set instance.wal.storageType: minio if milvus writes its WAL to the object store itself")
}

// settleRoot handles an empty minio.rootPath, which makes woodpecker write to
// "/wp/...": many stores drop the leading slash and list the same as "wp/...".
func (r *reset) settleRoot(ctx context.Context) error {
	if r.settings.ObjectStorage.RootPath != "" {
		return nil
	}
	r.warnings = append(r.warnings, "objectStorage.rootPath is empty: woodpecker's objects lie in the bucket itself, where milvus's other data lies beside them")
	exact, err := r.store.Exists(ctx, woodpecker.ObjectPrefix(r.root))
	if err != nil || exact {
		return err
	}
	r.root = strings.TrimPrefix(r.root, "/")
	return nil
}

func (r *reset) policy() retry.Policy {
	return retry.Policy{Attempts: woodpecker.DefaultRetry.Attempts, Attempt: r.in.AttemptTimeout}
}

// commit writes one guarded transaction. It may be sent again when etcd did not
// say what became of it, so every transaction of this step can be applied twice.
func (r *reset) commit(ctx context.Context, cmps []clientv3.Cmp, ops ...clientv3.Op) error {
	policy := retry.Policy{Attempts: etcdAttempts, Attempt: r.in.AttemptTimeout}
	err := policy.Do(ctx, func(ctx context.Context) error {
		_, err := r.env.Claim.Commit(ctx, cmps, ops...)
		return err
	})
	return r.etcdFailed(err)
}

// etcdFailed words what etcd's client says about a request.
func (r *reset) etcdFailed(err error) error {
	if err == nil {
		return nil
	}
	if _, worded := errors.AsType[*fault.Error](err); worded {
		return err
	}
	where := strings.Join(r.settings.Etcd.Endpoints, ",")
	_, timeout := errors.AsType[*retry.Timeout](err)
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fault.Fail("wal.etcd-full", "etcd is out of space and takes no writes").At(where).
			Hint("compact and defragment each member, raise --quota-backend-bytes if need be, then `etcdctl alarm disarm`, then apply again")
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fault.Fail("wal.etcd-denied", "the etcd user may not do this").At(where).Because(err).
			Hint("give the user in instance.etcd read and write access below the root path")
	case timeout, errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.Unavailable, retry.Transient(err):
		return fault.Fail("wal.etcd", "etcd does not answer").At(where).Because(err).
			Hint("check that a majority of the members is up, then apply again")
	default:
		return err
	}
}

// stillStopped looks for a Milvus before the tiers that have no transaction to
// compare it in.
func (r *reset) stillStopped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.in.AttemptTimeout)
	defer cancel()
	sessions, err := milvus.Sessions(ctx, r.etcd, r.settings.MetaRoot())
	if err != nil {
		return r.etcdFailed(err)
	}
	if len(sessions) == 0 {
		return nil
	}
	return fault.Fail("claim.session", "milvus is running: %s", joined(sessions)).
		Hint("stop it, then apply the same plan again: it finishes what is left")
}
