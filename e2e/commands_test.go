package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runbook/internal/labtest"
)

// processTimeout ends what a script started and should long have ended.
const processTimeout = 3 * time.Minute

// commands are what a script can do beside testscript's own commands:
//
//	lab [FLAG...]               start a lab of the script's own (flags of `runbook-lab up`),
//	                            set the credentials and write values.yaml
//	exits N PROGRAM ARG...      run a program and demand this exit code
//	took-at-most TIME           demand that the last exits took no longer
//	starts NAME PROGRAM ARG...  run a program beside the script, into NAME.out and NAME.err
//	ends N NAME                 wait for it and demand this exit code
//	signals NAME SIGNAL         send it INT or TERM
//	wait-for PATTERN PROGRAM ARG...  run a program again and again until its output matches
//	refused CODE [FLAG...]      apply $WAL with values.yaml and the flags, dry and with --run:
//	                            both are refused with this code, and not a byte has changed
//	unchanged A B [PATTERN...]  compare two snapshots of the lab, except for names that match
//	event FILE NAME[:STEP] PATH VALUE  the last such event in FILE has this value at PATH
//	counted STATUS EVENTS [INSTANCE]   what step wal removed is what the lab had counted
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	labs := make(chan struct{}, labsAtOnce)
	return map[string]func(*testscript.TestScript, bool, []string){
		"lab":          func(ts *testscript.TestScript, neg bool, args []string) { startLab(ts, labs, args) },
		"exits":        exits,
		"took-at-most": tookAtMost,
		"starts":       starts,
		"ends":         ends,
		"signals":      signals,
		"wait-for":     waitFor,
		"refused":      refused,
		"unchanged":    unchanged,
		"event":        eventHas,
		"counted":      counted,
	}
}

// startLab waits for its turn, so that few labs run at the same time.
func startLab(ts *testscript.TestScript, labs chan struct{}, args []string) {
	labs <- struct{}{}
	lab, stop, err := labtest.Open(ts.MkAbs("lab"), args...)
	if err != nil {
		<-labs
		ts.Fatalf("%v", err)
	}
	ts.Defer(func() {
		stop()
		<-labs
	})
	ts.Setenv("RUNBOOK_LAB_DIR", lab.Dir)
	for _, line := range strings.Split(output(ts, "runbook-lab", "env"), "\n") {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if ok {
			ts.Setenv(name, strings.Trim(value, `'"`))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("values.yaml"), []byte(output(ts, "runbook-lab", "values")), 0o600))
}

// command prepares a program to run where and as the script does.
func command(ctx context.Context, ts *testscript.TestScript, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "PWD="+ts.MkAbs("."))
	for _, name := range []string{"RUNBOOK_LAB_DIR", "XDG_STATE_HOME", "MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", "ETCD_USERNAME", "ETCD_PASSWORD", "NO_COLOR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

// output runs a program that must succeed, without touching the script's stdout.
func output(ts *testscript.TestScript, program string, args ...string) string {
	var said bytes.Buffer
	cmd := command(context.Background(), ts, program, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		ts.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// exits demands an exact exit code: what a step refuses (3) is not what failed (1).
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	began := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	processesOf(ts)[lastExits] = &process{took: time.Since(began)}
	demandCode(ts, want, err)
}

func demandCode(ts *testscript.TestScript, want int, err error) {
	got := 0
	if err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// processes are a script's, by the names that it gave them.
type processes map[string]*process

const lastExits = "" // what `exits` ran last

type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ended  chan error
	took   time.Duration
}

// processesOf is found under its own type, which nothing else can use.
func processesOf(ts *testscript.TestScript) processes {
	return ts.Value(processesKey{}).(processes)
}

type processesKey struct{}

func tookAtMost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: took-at-most TIME")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	if took := processesOf(ts)[lastExits].took; took > limit {
		ts.Fatalf("it took %s, more than %s", took, limit)
	}
}

func starts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: starts NAME PROGRAM ARG...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), processTimeout)
	p := &process{cmd: command(ctx, ts, args[1], args[2:]...), cancel: cancel, ended: make(chan error, 1)}
	stdout, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	ts.Check(p.cmd.Start())
	go func() {
		p.ended <- errors.Join(p.cmd.Wait(), stdout.Close(), stderr.Close())
	}()
	processesOf(ts)[args[0]] = p
	ts.Defer(func() {
		cancel() // a script that failed before its `ends`
		p.ended <- <-p.ended
	})
}

func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends N NAME")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	p := processesOf(ts)[args[1]]
	if p == nil {
		ts.Fatalf("no process %s was started", args[1])
	}
	err = <-p.ended
	p.ended <- err
	ts.Logf("[%s.out]\n%s[%s.err]\n%s", args[1], ts.ReadFile(args[1]+".out"), args[1], ts.ReadFile(args[1]+".err"))
	demandCode(ts, want, err)
}

func signals(ts *testscript.TestScript, neg bool, args []string) {
	known := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	if neg || len(args) != 2 || known[args[1]] == nil {
		ts.Fatalf("usage: signals NAME INT|TERM")
	}
	p := processesOf(ts)[args[0]]
	if p == nil {
		ts.Fatalf("no process %s was started", args[0])
	}
	ts.Check(p.cmd.Process.Signal(known[args[1]]))
}

const (
	waitTimeout = 60 * time.Second
	waitPoll    = 50 * time.Millisecond
)

func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: wait-for PATTERN PROGRAM ARG...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.Now().Add(waitTimeout)
	for {
		said, _ := command(context.Background(), ts, args[1], args[2:]...).CombinedOutput()
		if pattern.Match(said) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: %q did not come within %s; last was\n%s", args[1], args[0], waitTimeout, said)
		}
		time.Sleep(waitPoll)
	}
}

// refused leaves the output of the run in stdout, for the script to look at.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: refused CODE [FLAG...]")
	}
	code := args[0]
	apply := append([]string{"apply", ts.Getenv("WAL"), "--values", "values.yaml", "-o", "json"}, args[1:]...)
	output(ts, "runbook-lab", "snapshot", "before-refusal.json")
	for _, run := range [][]string{apply, append(apply, "--run")} {
		exits(ts, false, append([]string{"3", "runbook"}, run...))
		eventHas(ts, false, []string{"stdout", "ended", "end.error.code", code})
		eventHas(ts, false, []string{"stdout", "ended", "end.changed", "false"})
	}
	output(ts, "runbook-lab", "snapshot", "after-refusal.json")
	unchanged(ts, false, []string{"before-refusal.json", "after-refusal.json"})
}

func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unchanged A B [PATTERN...]")
	}
	but := regexp.MustCompile(`\A(?:` + strings.Join(append([]string{`\z.`}, args[2:]...), "|") + `)\z`)
	// It exits with 1 when there are differences; they are on its stdout then.
	said, _ := command(context.Background(), ts, "runbook-lab", "diff", args[0], args[1], "-o", "json").Output()
	var changes []struct{ What, Name, Before, After string }
	ts.Check(json.Unmarshal(said, &changes))
	var found strings.Builder
	for _, c := range changes {
		if !but.MatchString(c.Name) {
			fmt.Fprintf(&found, "%s %s: %s -> %s\n", c.What, c.Name, c.Before, c.After)
		}
	}
	if found.Len() > 0 {
		ts.Fatalf("%s and %s differ:\n%s", args[0], args[1], found.String())
	}
}
