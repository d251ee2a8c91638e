package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"runbook/internal/console"
	"runbook/internal/fault"
	"runbook/internal/runner"
)

// mayRun asks for consent where a person can give it. The flag --run alone is
// consent where nobody can.
func (a *app) mayRun(ctx context.Context, j job, preview *runner.Preview, f runFlags) error {
	if preview.Holder != nil && !preview.Holder.Gone() {
		return preview.Holder.Locked()
	}
	if f.yes || !preview.Changes || !isTerminal(a.in) || !a.err.TTY {
		return nil
	}
	fmt.Fprintf(a.err.W, "\n--run changes this instance:\n%s", a.err.Rows(indented(runner.InstanceLines(j.instance.Settings))))
	if len(preview.Destroys) > 0 {
		fmt.Fprintf(a.err.W, "it removes or rewrites:\n%s", a.err.Rows(indented(preview.Destroys)))
	}
	return a.ask(ctx, "its root path in etcd", j.instance.Settings.Etcd.RootPath)
}

// ask wants an answer typed, so that consent is about this instance and no other.
func (a *app) ask(ctx context.Context, what, want string) error {
	fmt.Fprintf(a.err.W, "type %s (%s) to go on: ", what, want)
	if m, ok := a.err.W.(*console.MaskingWriter); ok {
		_ = m.Flush()
	}
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be cancelled; the process ends soon after
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err.W)
		return context.Cause(ctx)
	case got := <-answer:
		if got == want {
			return nil
		}
		return fault.Refuse("apply.not-confirmed", "%q is not %s %q", got, what, want).
			Hint("apply again and type it, or give --yes")
	}
}

func isTerminal(r io.Reader) bool {
	file, ok := r.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
