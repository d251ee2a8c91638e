package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/instance"
	"runbook/internal/interrupt"
	"runbook/internal/milvus"
	"runbook/internal/runner"
)

// section is one part of what inspect shows. A room that knows something of an
// instance adds one here; each is read on its own, so that what cannot be
// reached does not hide the rest.
type section struct {
	title string
	read  func(ctx context.Context, i *instance.Instance) ([]event.Line, error)
}

func sections() []section {
	return []section{
		{"settings", inspectSettings},
		{"sessions", inspectSessions},
		{"runs", inspectClaim},
	}
}

// sectionTimeout bounds the reading of one section.
const sectionTimeout = 15 * time.Second

func (a *app) inspect() *cobra.Command {
	var flags planFlags
	var out output
	cmd := &cobra.Command{
		Use:   "inspect PLAN",
		Short: "show what the instance of a plan is and what state it is in",
		Long:  "inspect shows what the instance of a plan is and what state it is in. It reads only.",
		Args:  wants("one plan", 1, 1), ValidArgsFunction: planFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspectPlan(cmd.Context(), args[0], flags)
		},
	}
	flags.register(cmd)
	outputFlag(cmd, &out)
	return cmd
}

func (a *app) inspectPlan(parent context.Context, path string, flags planFlags) error {
	_, i, err := a.open(path, flags)
	if err != nil {
		a.diagnostics(err)
		return shown{err}
	}
	defer i.Close()
	ctx := interrupt.New(parent).Soft()
	for _, s := range sections() {
		ctx, cancel := context.WithTimeout(ctx, sectionTimeout)
		lines, err := s.read(ctx, i)
		cancel()
		if err != nil {
			lines = append(lines, event.Line{Subject: "unknown", Value: err.Error()})
		}
		a.printf("%s\n%s\n", s.title, a.out.Rows(lines))
	}
	return nil
}

func inspectSettings(_ context.Context, i *instance.Instance) ([]event.Line, error) {
	return runner.InstanceLines(i.Settings), nil
}

func inspectSessions(ctx context.Context, i *instance.Instance) ([]event.Line, error) {
	client, err := i.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := milvus.Sessions(ctx, client, i.Settings.MetaRoot())
	if err != nil {
		return nil, err
	}
	if len(sessions) == 0 {
		return []event.Line{{Subject: "milvus", Value: "no session under " + i.Settings.MetaRoot() + "/session/"}}, nil
	}
	var names []string
	for _, s := range sessions {
		names = append(names, s.String())
	}
	return []event.Line{{Subject: "milvus", Value: "running", Detail: names}}, nil
}

func inspectClaim(ctx context.Context, i *instance.Instance) ([]event.Line, error) {
	client, err := i.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	left, holder, err := claim.Read(ctx, client, i.Settings.Etcd.RootPath)
	if err != nil {
		return nil, err
	}
	lines := []event.Line{{Subject: "lock", Value: "free"}, {Subject: "half done", Value: "no"}}
	if holder != nil {
		lines[0].Value = "held by " + holder.String()
	}
	if left != nil {
		lines[1] = event.Line{Subject: "half done", Value: "yes", Detail: left.Lines()}
	}
	return lines, nil
}

// again is this command line with more flags, for an operator to copy.
func (a *app) again(more ...string) string {
	words := []string{"runbook"}
	for _, arg := range append(a.args, more...) {
		words = append(words, shellQuote(arg))
	}
	return strings.Join(words, " ")
}

func shellQuote(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !strings.ContainsRune("-_=./:,@%+", r) && !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
