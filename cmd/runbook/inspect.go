package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runbook/internal/claim"
	"runbook/internal/event"
	"runbook/internal/instance"
	"runbook/internal/milvus"
	"runbook/internal/plan"
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
			return a.inspectPlan(cmd.Context(), args[0], flags, out)
		},
	}
	flags.register(cmd)
	outputFlag(cmd, &out)
	return cmd
}

func (a *app) inspectPlan(parent context.Context, path string, flags planFlags, out output) error {
	_, i, err := a.open(path, flags)
	if err != nil {
		a.diagnostics(err)
		return shown{err}
	}
	defer i.Close()
	for _, s := range sections() {
		ctx, cancel := context.WithTimeout(parent, sectionTimeout)
		// Where settings come from Milvus's configuration, nothing can be reached before them.
		err := i.Configure(ctx)
		var lines []event.Line
		if err == nil {
			lines, err = s.read(ctx, i)
		}
		cancel()
		if err := a.printSection(inspected{V: event.Version, Section: s.title, Lines: lines, Error: event.ErrorOf(err)}, out); err != nil {
			return err
		}
	}
	return nil
}

// inspected is what one section found; its JSON form is what `-o json` prints.
type inspected struct {
	V       int          `json:"v"`
	Section string       `json:"section"`
	Lines   []event.Line `json:"lines,omitempty"`
	Error   *event.Error `json:"error,omitempty"`
}

func (a *app) printSection(s inspected, out output) error {
	if out == jsonOutput {
		return json.NewEncoder(a.out.W).Encode(s)
	}
	a.printf("%s\n%s", s.Section, a.out.Rows(indented(s.Lines)))
	if s.Error != nil {
		a.printf("%s", a.out.Rows([]event.Line{{Subject: "  not known", Value: s.Error.Message, Detail: s.Error.Hints}}))
	}
	a.printf("\n")
	return nil
}

func indented(lines []event.Line) []event.Line {
	var out []event.Line
	for _, line := range lines {
		line.Subject = "  " + line.Subject
		out = append(out, line)
	}
	return out
}

// inspectSettings shows every setting that has a value, and where that comes from.
func inspectSettings(_ context.Context, i *instance.Instance) ([]event.Line, error) {
	data, err := json.Marshal(i.Settings)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, err
	}
	lines := settingLines("", plan.Fields(reflect.TypeFor[instance.Settings]()), values)
	resolved, notes := i.Resolution()
	for _, r := range resolved {
		lines = sourced(lines, r)
	}
	for _, n := range notes {
		lines = append(lines, event.Line{Subject: "note", Value: n})
	}
	return lines, nil
}

// sourced says of a setting that it comes from Milvus's own configuration.
func sourced(lines []event.Line, r instance.Resolved) []event.Line {
	line := event.Line{Subject: r.Field, Value: r.Value + " (" + r.Source + ")"}
	if r.Lost != "" {
		line.Detail = []string{"weaker: " + r.Lost}
	}
	at := slices.IndexFunc(lines, func(l event.Line) bool { return l.Subject == r.Field })
	if at < 0 {
		return append(lines, line)
	}
	lines[at] = line
	return lines
}

func settingLines(prefix string, fields []plan.Field, values map[string]any) []event.Line {
	var lines []event.Line
	for _, f := range fields {
		switch value := values[f.Name].(type) {
		case nil:
		case map[string]any:
			if from, ok := value["valueFrom"].(map[string]any); ok {
				lines = append(lines, event.Line{Subject: prefix + f.Name, Value: "from " + source(from)})
				continue
			}
			lines = append(lines, settingLines(prefix+f.Name+".", f.Fields, value)...)
		case []any:
			lines = append(lines, event.Line{Subject: prefix + f.Name, Value: join(value)})
		default:
			text := fmt.Sprint(value)
			if text == "" {
				continue
			}
			if text == f.Default {
				text += " (the default)"
			}
			lines = append(lines, event.Line{Subject: prefix + f.Name, Value: text})
		}
	}
	return lines
}

// source names where a secret comes from: "env NAME".
func source(from map[string]any) string {
	for kind, of := range from { // exactly one
		if ref, ok := of.(map[string]any); ok {
			of = fmt.Sprintf("%v/%v", ref["name"], ref["key"])
		}
		return fmt.Sprintf("%s %v", kind, of)
	}
	return "nowhere"
}

func join(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
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
		if holder.Gone() {
			lines[0].Value = "left by a run that was killed: " + holder.String()
		}
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
