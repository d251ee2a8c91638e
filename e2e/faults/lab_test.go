package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	logs         = 3
	readyTimeout = 60 * time.Second
	poll         = 50 * time.Millisecond
)

type programs struct{ runbook, lab string }

func buildPrograms(t *testing.T) programs {
	t.Helper()
	bin := t.TempDir()
	p := programs{filepath.Join(bin, "runbook"), filepath.Join(bin, "runbook-lab")}
	for _, b := range []struct{ dir, pkg, out string }{{"../..", "./cmd/runbook", p.runbook}, {"../lab", ".", p.lab}} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.out, b.pkg)
		cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", b.pkg, err, said)
		}
	}
	return p
}

// lab is a running lab.
type lab struct {
	programs
	dir   string
	state struct {
		Etcd struct {
			Endpoints []string `json:"endpoints"`
		} `json:"etcd"`
		Objects struct {
			Endpoint string `json:"endpoint"`
		} `json:"objects"`
	}
	env []string // credentials
}

func startLab(t *testing.T, p programs, flags ...string) *lab {
	t.Helper()
	l := &lab{programs: p, dir: filepath.Join(t.TempDir(), "lab")}
	l.run(t, append([]string{"up", "--detach", "--ports", "auto"}, flags...)...)
	t.Cleanup(func() { l.run(t, "down") })
	data, err := os.ReadFile(filepath.Join(l.dir, "lab.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &l.state); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(l.run(t, "env")), "\n") {
		l.env = append(l.env, strings.TrimPrefix(line, "export "))
	}
	return l
}

func (l *lab) run(t *testing.T, args ...string) string {
	t.Helper()
	said, err := l.try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func (l *lab) try(args ...string) (string, error) {
	cmd := exec.Command(l.lab, append(args, "--dir", l.dir)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("runbook-lab %s: %w\n%s%s", strings.Join(args, " "), err, &out, &problems)
	}
	return out.String(), nil
}

// awaitEtcd waits until a majority has a leader again.
func (l *lab) awaitEtcd(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(readyTimeout)
	for time.Now().Before(deadline) {
		if _, err := l.try("etcd", "revision"); err == nil {
			return
		}
		time.Sleep(poll)
	}
	t.Fatalf("etcd has no leader after %s", readyTimeout)
}

// instance is one Milvus of a lab, reached through proxies of its own.
type instance struct {
	lab              *lab
	root, objectRoot string
	etcd, objects    *proxy
	stateDir         string
}

func (l *lab) instance(t *testing.T, name string) *instance {
	t.Helper()
	i := &instance{lab: l, root: name, objectRoot: "files-" + name, stateDir: t.TempDir()}
	l.run(t, "seed", "--milvus", "--logs", fmt.Sprint(logs), "--root", i.root, "--object-root", i.objectRoot)
	i.etcd = newProxy(t, strings.TrimPrefix(l.state.Etcd.Endpoints[0], "http://"))
	i.objects = newProxy(t, l.state.Objects.Endpoint)
	return i
}

func (i *instance) proxy(server string) *proxy {
	if server == "etcd" {
		return i.etcd
	}
	return i.objects
}

// outcome is how a run ended.
type outcome struct {
	exit   int
	said   string // code and message of the error, or of the end
	took   time.Duration
	events string
}

// apply applies the plan. middle, if given, is called once the step that empties
// the WAL has begun.
func (i *instance) apply(t *testing.T, middle func()) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*longest)
	defer cancel()
	endpoints := i.etcd.address()
	if others := i.lab.state.Etcd.Endpoints; len(others) > 1 {
		endpoints = strings.Join(others, ",")
	}
	cmd := exec.CommandContext(ctx, i.lab.runbook, "apply", "testdata/plan.yaml", "--run", "-o", "json", "--state-dir", i.stateDir,
		"--set", "etcdEndpoints="+endpoints, "--set", "objectEndpoint="+i.objects.address(),
		"--set", "rootPath="+i.root, "--set", "objectRoot="+i.objectRoot)
	cmd.Env = append(os.Environ(), i.lab.env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := outcome{}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		o.events += lines.Text() + "\n"
		if middle != nil && isMiddle(lines.Bytes()) {
			middle()
			middle = nil
		}
		o.note(lines.Bytes())
	}
	exit, failed := errors.AsType[*exec.ExitError](cmd.Wait())
	if failed {
		o.exit = exit.ExitCode()
	}
	o.took, o.events = time.Since(start), o.events+problems.String()
	return o
}

type event struct {
	Event    string `json:"event"`
	Progress struct {
		What string `json:"what"`
	} `json:"progress"`
	End *struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"end"`
}

// isMiddle holds once every node is told: what follows is waiting for them, the
// deletion of objects, a look at everything again and the deletion of metadata.
func isMiddle(line []byte) bool {
	var e event
	return json.Unmarshal(line, &e) == nil && e.Event == "progress" && strings.HasPrefix(e.Progress.What, "marking logs deleted")
}

func (o *outcome) note(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Event != "ended" || e.End == nil {
		return
	}
	if o.said = "done"; e.End.Error != nil {
		o.said = fmt.Sprintf("`%s`", e.End.Error.Code)
	}
}

// empty is nil when the lab finds the WAL empty.
func (i *instance) empty() error {
	_, err := i.lab.try("verify", "--root", i.root, "--object-root", i.objectRoot, "--counter", fmt.Sprint(logs))
	return err
}
