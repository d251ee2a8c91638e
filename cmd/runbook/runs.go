package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runbook/internal/event"
	"runbook/internal/journal"
)

func (a *app) runs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "look at the journals of runs",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.listRuns(), a.showRun(), a.reportRun())
	return cmd
}

func (a *app) listRuns() *cobra.Command {
	var dir string
	var out output
	cmd := &cobra.Command{
		Use: "list", Short: "list the runs, the newest first", Args: wants("no argument", 0, 0),
		RunE: func(*cobra.Command, []string) error { return a.runList(dir, out) },
	}
	stateDirFlag(cmd, &dir)
	outputFlag(cmd, &out)
	return cmd
}

// runSummary is one run in a list; its JSON form is what `-o json` prints.
type runSummary struct {
	journal.Record
	Outcome string  `json:"outcome"`
	Seconds float64 `json:"seconds,omitempty"`
	Dir     string  `json:"dir"`
}

func (a *app) runList(dir string, out output) error {
	store, err := journal.Open(dir)
	if err != nil {
		return err
	}
	runs, broken := store.List()
	for _, past := range runs {
		report, err := past.Report()
		if err != nil {
			return err
		}
		s := runSummary{Record: past.Record, Outcome: report.Outcome(), Dir: past.Dir}
		if report.End != nil {
			s.Seconds = report.End.Seconds
		}
		if err := a.printSummary(s, out); err != nil {
			return err
		}
	}
	if len(runs) == 0 && out == textOutput && broken == nil {
		a.printf("no run is recorded in %s\n", store.Dir())
	}
	return broken
}

func (a *app) printSummary(s runSummary, out output) error {
	if out == jsonOutput {
		return json.NewEncoder(a.out.W).Encode(s)
	}
	took := ""
	if s.Seconds > 0 {
		took = time.Duration(s.Seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
	}
	a.printf("%s  %-11s  %-6s  %s  %s@%s  %s\n", s.ID, s.Outcome, took, s.Plan, s.Who, s.Host, s.Instance)
	return nil
}

func (a *app) showRun() *cobra.Command {
	var dir string
	var out output
	cmd := &cobra.Command{
		Use: "show RUN-ID", Short: "show what a run showed, event by event",
		Long:              "show shows what a run showed, event by event. A part of its id is enough; `last` is the newest run.",
		Args:              wants("the id of a run, or `last`", 1, 1),
		ValidArgsFunction: runIDs(&dir),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.show(dir, args[0], out)
		},
	}
	stateDirFlag(cmd, &dir)
	outputFlag(cmd, &out)
	return cmd
}

func (a *app) show(dir, id string, out output) error {
	past, err := findRun(dir, id)
	if err != nil {
		return err
	}
	events, damaged, err := past.Events()
	if err != nil {
		return err
	}
	// Everything is a result here, so everything goes to stdout.
	show, done := a.console(out, a.out)
	defer done()
	ended := false
	for _, e := range events {
		show.Emit(e)
		ended = ended || e.Event == event.Ended
	}
	for _, text := range damaged {
		fmt.Fprint(a.err.W, a.err.Advice(text))
	}
	if !ended {
		fmt.Fprint(a.err.W, a.err.Advice("this journal has no end: the run was killed, or it is still under way",
			"look at the instance with `runbook inspect`; if the run is gone, apply the same plan again"))
	}
	return nil
}

func findRun(dir, id string) (*journal.Past, error) {
	store, err := journal.Open(dir)
	if err != nil {
		return nil, err
	}
	return store.Find(id)
}

// runIDs completes the ids of runs.
func runIDs(dir *string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		store, err := journal.Open(*dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, _ := store.List()
		ids := []string{"last"}
		for _, past := range runs {
			ids = append(ids, past.Record.ID)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) reportRun() *cobra.Command {
	var dir string
	var page bool
	cmd := &cobra.Command{
		Use: "report RUN-ID", Short: "print the report of a run, to attach to a change ticket",
		Long: `report prints the report of a run as Markdown, or as one self-contained HTML page.
A part of its id is enough; "last" is the newest run. Both also lie in the run's
folder, as report.md and report.html.`,
		Example:           "  runbook runs report last\n  runbook runs report last --html > change-1234.html",
		Args:              wants("the id of a run, or `last`", 1, 1),
		ValidArgsFunction: runIDs(&dir),
		RunE: func(_ *cobra.Command, args []string) error {
			past, err := findRun(dir, args[0])
			if err != nil {
				return err
			}
			report, err := past.Report()
			if err != nil {
				return err
			}
			if page {
				return report.HTML(a.out.W)
			}
			return report.Markdown(a.out.W)
		},
	}
	cmd.Flags().BoolVar(&page, "html", false, "print the HTML page")
	stateDirFlag(cmd, &dir)
	return cmd
}
