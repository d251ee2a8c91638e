package claim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// process identifies a process beyond doubt: two are the same when all fields
// are. It lets a lock be taken from a run that was killed a moment ago, on the
// same machine, without waiting for its lease.
type process struct {
	Boot      string `json:"boot,omitempty"`      // id of the machine's boot
	Namespace string `json:"namespace,omitempty"` // its pid namespace
	PID       int    `json:"pid,omitempty"`
	Start     string `json:"start,omitempty"` // clock ticks after boot
}

func thisProcess() process {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	p := process{Boot: strings.TrimSpace(string(boot)), Namespace: namespace, PID: os.Getpid()}
	p.Start, _ = startOf(p.PID)
	return p
}

// gone reports whether the process is certainly dead. In doubt it is not.
func (p process) gone() bool {
	here := thisProcess()
	if p.Boot == "" || p.Namespace == "" || p.Start == "" || p.PID <= 0 ||
		p.Boot != here.Boot || p.Namespace != here.Namespace {
		return false
	}
	// /proc may hide the processes of other users; kill does not.
	if errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) {
		return true
	}
	start, dead := startOf(p.PID)
	return dead || start != "" && start != p.Start
}

// startOf reads /proc/{pid}/stat: field 3 is the state, field 22 the start time.
func startOf(pid int) (start string, dead bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The second field, the name in parentheses, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", false
	}
	return fields[19], fields[0] == "Z" || fields[0] == "X"
}
