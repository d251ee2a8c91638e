package assertstopped

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/step"
	"runbook/internal/woodpecker"
)

// etcdHealthy asks for a quorum and for no alarm. An etcd out of space refuses
// writes but not deletes, so a reset would stop half-way: see it first.
func etcdHealthy(ctx context.Context, in *instance.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := in.Etcd(ctx)
	if err != nil {
		return err
	}
	// A linearizable read needs a majority of the members.
	if _, err := client.Get(ctx, in.Settings.MetaRoot(), clientv3.WithCountOnly()); err != nil {
		return etcdDown(in, err)
	}
	alarms, err := client.AlarmList(ctx)
	if err != nil {
		return etcdDown(in, err)
	}
	if len(alarms.Alarms) == 0 {
		return nil
	}
	var names []string
	for _, alarm := range alarms.Alarms {
		names = append(names, fmt.Sprintf("%s on member %x", alarm.Alarm, alarm.MemberID))
	}
	return fault.Refuse("up.etcd-alarm", "etcd has raised an alarm: %s", strings.Join(names, ", ")).
		At(strings.Join(in.Settings.Etcd.Endpoints, ",")).
		Hint("NOSPACE: compact and defragment each member, raise --quota-backend-bytes if need be, then `etcdctl alarm disarm`").
		Hint("CORRUPT: repair the member before anything else")
}

func etcdDown(in *instance.Instance, err error) error {
	return fault.Refuse("up.etcd", "etcd does not answer").At(strings.Join(in.Settings.Etcd.Endpoints, ",")).Because(err).
		Hint("check that a majority of the members is up and that endpoints, TLS and user in instance.etcd are right")
}

// dependenciesUp asks what must stay up, and names in out what was found up.
func dependenciesUp(ctx context.Context, env *step.Env, in Inputs, out *Outputs) error {
	out.Up = append(out.Up, "etcd") // every check before this one read from it
	if err := objectsUp(ctx, env.Instance); err != nil {
		return err
	}
	out.Up = append(out.Up, "bucket "+env.Instance.Settings.ObjectStorage.Bucket)
	return nodesUp(ctx, env, in, out)
}

// objectsUp asks for the bucket by listing it, which is what a reset does first.
func objectsUp(ctx context.Context, in *instance.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	store, err := in.Objects(ctx)
	if err != nil {
		return err
	}
	_, err = store.Exists(ctx, woodpecker.ObjectPrefix(in.Settings.WALObjectRoot()))
	return fault.Refusal(err)
}

func deleteAllowed(ctx context.Context, in *instance.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	store, err := in.Objects(ctx)
	if err != nil {
		return err
	}
	return fault.Refusal(store.MayDelete(ctx, woodpecker.ObjectPrefix(in.Settings.WALObjectRoot())))
}
