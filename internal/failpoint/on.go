//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

var hits atomic.Int64

// Hit counts the boundaries passed. RUNBOOK_KILL_AT=n kills the process at the
// n-th one, as SIGKILL does: nothing deferred runs. RUNBOOK_FAILPOINT_LOG=file
// appends each name, so that a test learns how many there are.
func Hit(name string) {
	n := hits.Add(1)
	if path := os.Getenv("RUNBOOK_FAILPOINT_LOG"); path != "" {
		if f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(f, "%d %s\n", n, name)
			f.Close()
		}
	}
	if at, err := strconv.ParseInt(os.Getenv("RUNBOOK_KILL_AT"), 10, 64); err == nil && n == at {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
