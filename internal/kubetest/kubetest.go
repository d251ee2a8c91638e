// Package kubetest gives a test a Kubernetes API server of its own, started with
// the program in e2e/kubelab and gone when the test ends. Only tests import it.
package kubetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	readyTimeout = 120 * time.Second
	stopTimeout  = 15 * time.Second
	readyPoll    = 50 * time.Millisecond
)

// Cluster is a running API server with what stands in for nodes.
type Cluster struct {
	Dir        string
	Kubeconfig string // of a user who may do everything
	program    string
}

// Start starts a cluster and waits until it is ready. Under `go test -short` the
// test is skipped. RUNBOOK_KUBELAB names a program that is built already; without
// it, it is built here, which takes minutes the first time.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	dir := filepath.Join(t.TempDir(), "kubelab")
	c := &Cluster{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), program: program(t)}
	cmd := exec.Command(c.program, "up", "--dir", dir)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() { stop(cmd.Process, exited) })
	c.await(t, exited, &said)
	return c
}

func (c *Cluster) await(t testing.TB, exited chan struct{}, said *strings.Builder) {
	t.Helper()
	deadline := time.After(readyTimeout)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(c.Dir, "kubelab.ready")); err == nil {
			return
		}
		select {
		case <-exited:
			t.Fatalf("the cluster did not start:\n%s", said)
		case <-deadline:
			t.Fatalf("the cluster was not ready after %s", readyTimeout)
		case <-tick.C:
		}
	}
}

func stop(p *os.Process, exited chan struct{}) {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		_ = p.Kill()
		<-exited
	}
}

// Run runs one more command of runbook-kubelab on a namespace of this cluster
// ("install", "knob", "status") and returns what it printed.
func (c *Cluster) Run(t testing.TB, namespace string, args ...string) string {
	t.Helper()
	said, err := exec.Command(c.program, append(args, "--dir", c.Dir, "--namespace", namespace)...).CombinedOutput()
	if err != nil {
		t.Fatalf("runbook-kubelab %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return string(said)
}

// program is the path of runbook-kubelab.
func program(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("RUNBOOK_KUBELAB"); path != "" {
		return path
	}
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "..", "..", "e2e", "kubelab")
	path := filepath.Join(module, "bin", "runbook-kubelab")
	defer exclusive(t, module)()
	const version = "-X k8s.io/component-base/version."
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "-ldflags",
		"-s -w "+version+"gitVersion=v1.37.2 "+version+"gitMajor=1 "+version+"gitMinor=37", ".")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the cluster's program: %v\n%s", err, said)
	}
	return path
}

// exclusive keeps the tests of other packages from building at the same time.
func exclusive(t testing.TB, module string) func() {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(module, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(module, "bin", ".building"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { file.Close() }
}
