// Command runbook applies plans of typed steps to a stopped Milvus: see
// `runbook help`, and docs/commands.md.
package main

import (
	"os"

	"runbook/internal/console"
)

// version is set by the linker.
var version = "dev"

func main() {
	mask := &console.Redactor{}
	a := &app{
		in: os.Stdin, mask: mask, args: os.Args[1:],
		out: console.TerminalOf(os.Stdout, mask), err: console.TerminalOf(os.Stderr, mask),
	}
	os.Exit(a.guard(a.main))
}
