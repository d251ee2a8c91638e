// Package labtest gives a test a lab of its own: a real etcd, a real object store
// and real log-store nodes, started with the program in e2e/lab and gone when
// the test ends. Only tests import it.
package labtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	readyPoll    = 50 * time.Millisecond
)

// Credential is a name and the secret that proves it.
type Credential struct{ Name, Secret string }

// Lab is a running lab, as its lab.json describes it.
type Lab struct {
	Dir  string
	Etcd struct {
		Endpoints            []string
		CAFile               string
		Root, Writer, Reader *Credential // set with the flag --etcd-auth
	}
	Objects struct {
		Endpoint              string
		Admin, Writer, Reader Credential
	}
	Nodes []struct {
		N        int
		Endpoint string // host:port
		DataDir  string
	}

	program string
}

// Start runs `runbook-lab up` with these flags more and waits until it is ready.
// Under `go test -short` the test is skipped. RUNBOOK_LAB names a program that
// is built already; without it, it is built here (once: the go command sees
// that it is up to date).
func Start(t testing.TB, flags ...string) *Lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a lab")
	}
	lab, stop, err := Open(filepath.Join(t.TempDir(), "lab"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return lab
}

// Open is Start for a test that is no Go function. The lab lies in dir until stop
// is called, or this process ends.
func Open(dir string, flags ...string) (lab *Lab, stop func(), err error) {
	lab = &Lab{}
	if lab.program, err = Program(); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(lab.program, append([]string{"up", "--dir", dir, "--ports", "auto", "--pdeathsig"}, flags...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	stop = func() { end(cmd.Process, exited) }
	if err := lab.await(dir, exited); err != nil {
		stop()
		return nil, nil, fmt.Errorf("%w:\n%s", err, said.String())
	}
	return lab, stop, nil
}

func (l *Lab) await(dir string, exited chan struct{}) error {
	deadline := time.After(readyTimeout)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(filepath.Join(dir, "lab.json")); err == nil && json.Unmarshal(data, l) == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("the lab did not start")
		case <-deadline:
			return fmt.Errorf("the lab was not ready after %s", readyTimeout)
		case <-tick.C:
		}
	}
}

func end(p *os.Process, exited chan struct{}) {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		_ = p.Kill()
		<-exited
	}
}

// Program is the path of runbook-lab, built unless RUNBOOK_LAB names one.
func Program() (string, error) {
	if path := os.Getenv("RUNBOOK_LAB"); path != "" {
		return path, nil
	}
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "..", "..", "e2e", "lab")
	path := filepath.Join(module, "bin", "runbook-lab")
	unlock, err := exclusive(module)
	if err != nil {
		return "", err
	}
	defer unlock()
	// The flags are those of the Makefile: what it has compiled is not compiled again.
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the lab: %w\n%s", err, said)
	}
	return path, nil
}

// exclusive keeps the tests of other packages from building at the same time.
func exclusive(module string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(module, "bin"), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(module, "bin", ".building"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { file.Close() }, nil
}

// Run runs one more command of runbook-lab on this lab ("seed", "stop-etcd",
// "stop-node 2") and returns what it printed.
func (l *Lab) Run(t testing.TB, args ...string) string {
	t.Helper()
	said, err := l.Command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("runbook-lab %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return string(said)
}

// Command prepares one more command of runbook-lab on this lab.
func (l *Lab) Command(args ...string) *exec.Cmd {
	return exec.Command(l.program, append(args, "--dir", l.Dir)...)
}

// EtcdClient returns a client of the lab's etcd without user and TLS.
func (l *Lab) EtcdClient(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: l.Etcd.Endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// At is the lab that lies in dir already.
func At(dir string) *Lab {
	path, err := Program()
	if err != nil {
		panic(err) // a lab that runs was started by this program
	}
	return &Lab{Dir: dir, program: path}
}
