package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"runbook/internal/event"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
	"runbook/internal/runner"
)

// lastWords is how long the second signal leaves for writing the journal.
const lastWords = 3 * time.Second

// signals turns the first signal into a stop between two units of work and the
// second into an abort; what it returns ends that. A closed terminal (SIGHUP)
// counts as a signal, a closed pipe does not: neither may cut a run in the middle.
func (a *app) signals(ctx *interrupt.Context, out runner.Console) func() {
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		say := func(text string) {
			out.Emit(event.Event{V: event.Version, Time: time.Now().UTC(), Event: event.Warning, Text: text})
		}
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-received:
			}
			switch n {
			case 1:
				say("interrupted: ending after the unit of work under way; once more ends at once")
				ctx.Stop()
			case 2:
				say("interrupted again: ending at once")
				ctx.Abort(nil)
				time.AfterFunc(lastWords, func() { os.Exit(fault.Interrupted.ExitCode()) })
			default:
				os.Exit(fault.Interrupted.ExitCode())
			}
		}
	}()
	return func() {
		signal.Stop(received)
		close(done)
	}
}
