package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runbook/internal/labtest"
)

// TestMain lets the test binary be the command that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"runbook": main})
}

// The scripts under testdata read as sessions at a terminal. Besides the commands
// of testscript they have:
//
//	lab [flags]            start a lab of the script's own (flags of `runbook-lab up`)
//	on-lab ARG...          one more command of runbook-lab
//	exits N PROGRAM ARG... run a program and demand this exit code
//	until 'TEXT' PROGRAM ARG...   run a program again and again until its stdout holds TEXT
//	no-secret FILE...      demand that no file, and neither stream, holds a secret of the script
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"lab": startLab, "on-lab": onLab, "exits": exits, "until": until, "no-secret": noSecret,
		},
		Condition: func(condition string) (bool, error) {
			if condition == "lab" {
				return !testing.Short(), nil
			}
			return false, fmt.Errorf("no condition %q", condition)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("MINIO_ACCESS_KEY", "minioadmin")
			env.Setenv("MINIO_SECRET_KEY", "minioadmin")
			return nil
		},
		RequireUniqueNames: true,
	})
}

func startLab(ts *testscript.TestScript, neg bool, args []string) {
	lab, stop, err := labtest.Open(ts.MkAbs("lab"), args...)
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("RUNBOOK_LAB_DIR", lab.Dir)
	values, err := lab.Command("values").Output()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("values.yaml"), values, 0o600))
}

func onLab(ts *testscript.TestScript, neg bool, args []string) {
	lab := labtest.At(ts.Getenv("RUNBOOK_LAB_DIR"))
	said, err := lab.Command(args...).CombinedOutput()
	if (err != nil) != neg {
		ts.Fatalf("runbook-lab %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

const untilTimeout = 60 * time.Second

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until 'text' program [args...]")
	}
	deadline := time.Now().Add(untilTimeout)
	for {
		_ = ts.Exec(args[1], args[2:]...)
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q did not come within %s", args[0], untilTimeout)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// noSecret looks for the values of all variables whose name begins with SECRET.
func noSecret(ts *testscript.TestScript, neg bool, args []string) {
	looked := map[string][]byte{"stdout": []byte(ts.ReadFile("stdout")), "stderr": []byte(ts.ReadFile("stderr"))}
	for _, arg := range args {
		ts.Check(filepath.Walk(ts.MkAbs(arg), func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return err
			}
			looked[path], err = os.ReadFile(path)
			return err
		}))
	}
	for _, name := range []string{"SECRET_A", "SECRET_B", "SECRET_C"} {
		value := ts.Getenv(name)
		if value == "" {
			continue
		}
		for where, data := range looked {
			if bytes.Contains(data, []byte(value)) {
				ts.Fatalf("%s holds %s", where, name)
			}
		}
	}
}
