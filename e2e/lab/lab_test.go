package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runbook/e2e/lab/internal/cli"
	"runbook/e2e/lab/internal/state"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"runbook-lab": func() { os.Exit(cli.Main(context.Background(), os.Args[1:])) },
	})
}

// TestScripts runs the scripts below testdata, each against labs of its own. A
// lab ends with this process however it ends.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"killed": killed,
			"gone":   gone,
			"until":  until,
		},
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			dir := filepath.Join(env.WorkDir, "lab")
			env.Setenv(state.EnvDir, dir)
			env.Setenv("LAB", dir)
			env.Defer(func() { stopLabs(t, env.WorkDir) })
			return nil
		},
	})
}

// stopLabs ends the labs that a failed script left running.
func stopLabs(t *testing.T, workDir string) {
	files, err := filepath.Glob(filepath.Join(workDir, "*", "lab.json"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		lab, err := state.Load(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		if running, err := state.Running(dir); err == nil && running {
			_ = syscall.Kill(lab.PID, syscall.SIGKILL)
		}
	}
}

// exits runs a program and demands an exit code: exits N program [args...]
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// killed kills the lab process of a directory, as a crash would: killed DIR
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killed DIR")
	}
	dir := ts.MkAbs(args[0])
	lab, err := state.Load(dir)
	ts.Check(err)
	ts.Check(syscall.Kill(lab.PID, syscall.SIGKILL))
	ts.Check(poll(10*time.Second, func() error {
		running, err := state.Running(dir)
		if err == nil && running {
			err = errors.New("the lab still runs")
		}
		return err
	}))
}

// gone demands that no process of a lab is left: gone DIR
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(poll(10*time.Second, func() error {
		pids, err := processesIn(dir)
		if err == nil && len(pids) > 0 {
			err = fmt.Errorf("processes left: %v", pids)
		}
		return err
	}))
}

// processesIn lists the processes that work below dir or name it.
func processesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || e.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")) // a process may end meanwhile
		cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.HasPrefix(cwd, dir+"/") || strings.Contains(string(cmdline), dir+"\x00") {
			pids = append(pids, e.Name())
		}
	}
	return pids, nil
}

// until repeats a program until it succeeds: until program [args...]
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: until program [args...]")
	}
	ts.Check(poll(20*time.Second, func() error {
		err := ts.Exec(args[0], args[1:]...)
		if neg && err == nil {
			return errors.New("still succeeds")
		}
		if neg {
			return nil
		}
		return err
	}))
}

// poll repeats f until it succeeds, and returns its last error if it never does.
func poll(limit time.Duration, f func() error) error {
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		}
	}
}
