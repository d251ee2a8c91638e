// Command runbook-lab runs the outside world of runbook on this machine: a real
// etcd, a real object store and real woodpecker log-store nodes on loopback
// addresses, and looks into them without sharing code with runbook.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"runbook/e2e/lab/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
