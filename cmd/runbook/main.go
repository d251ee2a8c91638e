// Command runbook applies plans of typed steps to a stopped Milvus: see
// `runbook help`, and docs/commands.md.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"runbook/internal/console"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

// run is main with an exit code; a panic leaves masked, like everything else.
func run() (code int) {
	mask := &console.Redactor{}
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("error: a bug in runbook: %v\n%s", p, debug.Stack())
			_, _ = os.Stderr.Write(mask.Mask([]byte(text)))
			code = exitCode(fmt.Errorf("panic"))
		}
	}()
	a := &app{
		in: os.Stdin, mask: mask, args: os.Args[1:],
		out: console.TerminalOf(os.Stdout, mask), err: console.TerminalOf(os.Stderr, mask),
	}
	return a.main()
}
