package assertstopped

import (
	"context"
	"fmt"
	"strings"
	"time"

	"runbook/internal/fault"
	"runbook/internal/instance"
	"runbook/internal/milvus"
	"runbook/internal/step"
	"runbook/internal/woodpecker"
)

// nodesTimeout bounds the search for all nodes; each is asked on its own.
const nodesTimeout = 30 * time.Second

// nodesUp asks every log-store node that metadata, membership or seeds name.
// Which prefix to read is resetWal's question: where it is not clear, the nodes
// are reported as not checked and that step says why.
func nodesUp(ctx context.Context, env *step.Env, in Inputs, out *Outputs) error {
	settings := env.Instance.Settings.WAL
	if settings.Type != "woodpecker" || settings.StorageType != "service" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	metadata, err := readMetadata(ctx, env.Instance)
	if fault.KindOf(err) == fault.Refused {
		out.NotChecked = append(out.NotChecked, "log-store nodes: no single woodpecker prefix to read them from")
		return nil
	}
	if err != nil {
		return err
	}
	nodes, err := woodpecker.Nodes(ctx, metadata, settings.NodeSeeds, env.Instance.Node)
	if err != nil {
		return err
	}
	var down []string
	for _, node := range nodes {
		if node.Err != nil {
			down = append(down, describeNode(node))
		}
	}
	switch {
	case len(down) == 0:
	case in.RequireAllNodes:
		return fault.Refuse("up.node", "log-store nodes do not answer: %s", strings.Join(down, "; ")).
			Hint("start them: the files on their disks can only be removed by themselves").
			Hint("or set requireAllNodes: false here and skipUnreachableNodes: true on resetWal, and clean their disks by hand later")
	default:
		env.Report.Warn("log-store nodes do not answer: %s", strings.Join(down, "; "))
	}
	out.Up = append(out.Up, fmt.Sprintf("%d of %d log-store nodes", len(nodes)-len(down), len(nodes)))
	return nil
}

func readMetadata(ctx context.Context, in *instance.Instance) (*woodpecker.Metadata, error) {
	client, err := in.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	survey, err := woodpecker.Look(ctx, client, in.Settings.Etcd.RootPath, in.Settings.WAL.MetaPrefix)
	if err != nil {
		return nil, err
	}
	prefix, _, err := survey.Choose(in.Settings.WAL.MetaPrefix)
	if err != nil {
		return nil, err
	}
	view, err := milvus.NewView(ctx, client, in.Settings.MetaRoot())
	if err != nil {
		return nil, err
	}
	return woodpecker.Read(ctx, view, prefix)
}

func describeNode(node woodpecker.KnownNode) string {
	text := fmt.Sprintf("%s (%s", node.Address, node.Err)
	if n := len(node.Logs); n > 0 {
		text += fmt.Sprintf("; %d logs lie on it", n)
	}
	if node.MovedTo != "" {
		text += "; it answers at " + node.MovedTo
	}
	return text + ")"
}
