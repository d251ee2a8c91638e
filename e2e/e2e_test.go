// Package e2e drives the built programs from outside, as an operator does, and
// looks at real servers afterwards: keys in etcd, objects in the store, files on
// node disks. A scenario is one script under testdata, named after what it shows;
// a case from the field is named after the case.
//
// Scripts are testscript files. Besides its commands they have:
//
//	lab [flags]       start a lab of this script's own (flags of `runbook-lab up`);
//	                  sets the credentials and writes values.yaml
//	exits N prog ...  run prog and demand this exit code
//	wait-for RE prog  run prog until its output matches RE
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	labReady       = 60 * time.Second
	conditionHolds = 60 * time.Second
)

func TestScenarios(t *testing.T) {
	bin := t.TempDir()
	build(t, "..", "./cmd/runbook", filepath.Join(bin, "runbook"), "-tags=failpoints")
	build(t, "lab", ".", filepath.Join(bin, "runbook-lab"))
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"lab":      startLab,
			"exits":    exits,
			"wait-for": waitFor,
		},
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("PLANS", filepath.Join(repo, "plans"))
			env.Setenv("WAL", filepath.Join(repo, "e2e", "testdata", "plans", "wal.yaml"))
			env.Setenv("POSITIONS", filepath.Join(repo, "e2e", "testdata", "plans", "positions.yaml"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}

func build(t *testing.T, dir, pkg, out string, flags ...string) {
	t.Helper()
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
}

// startLab runs a lab as a child that dies with this test process, whatever ends it.
func startLab(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("lab cannot be negated")
	}
	dir := ts.MkAbs("lab")
	logPath := ts.MkAbs("lab.log")
	log, err := os.Create(logPath)
	ts.Check(err)
	cmd := exec.Command(lookPath(ts, "runbook-lab"), append([]string{"up", "--dir", dir, "--ports", "auto"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	ts.Check(cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		log.Close()
	})
	ts.Setenv("RUNBOOK_LAB_DIR", dir)
	waitReady(ts, dir, logPath, exited)
	for _, line := range strings.Split(labOutput(ts, "env"), "\n") {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if ok {
			ts.Setenv(name, strings.Trim(value, `'"`))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("values.yaml"), []byte(labOutput(ts, "values")), 0o600))
}

func waitReady(ts *testscript.TestScript, dir, logPath string, exited chan error) {
	deadline := time.After(labReady)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(dir, "lab.json")); err == nil {
			return
		}
		select {
		case err := <-exited:
			exited <- err // for the deferred clean-up
			text, _ := os.ReadFile(logPath)
			ts.Fatalf("the lab did not start: %v\n%s", err, text)
		case <-deadline:
			ts.Fatalf("the lab was not ready after %s", labReady)
		case <-tick.C:
		}
	}
}

func labOutput(ts *testscript.TestScript, args ...string) string {
	cmd := exec.Command(lookPath(ts, "runbook-lab"), args...)
	cmd.Env = append(os.Environ(), "RUNBOOK_LAB_DIR="+ts.Getenv("RUNBOOK_LAB_DIR"))
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("runbook-lab %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func lookPath(ts *testscript.TestScript, program string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	ts.Fatalf("%s is not in PATH", program)
	return ""
}

// exits demands an exact exit code: what a step refuses (3) is not what failed (1).
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s", fmt.Sprintf("exit code %d, want %d", got, want))
	}
}

// waitFor runs a program until its output matches: a condition with a deadline.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: wait-for regexp program [args...]")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	deadline := time.Now().Add(conditionHolds)
	for time.Now().Before(deadline) {
		cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
		cmd.Env = append(os.Environ(), "RUNBOOK_LAB_DIR="+ts.Getenv("RUNBOOK_LAB_DIR"))
		if out, err := cmd.Output(); err == nil && want.Match(out) {
			return
		}
	}
	ts.Fatalf("%s did not match %q within %s", strings.Join(args[1:], " "), args[0], conditionHolds)
}
