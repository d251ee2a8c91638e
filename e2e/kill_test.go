package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/claim"
	"runbook/internal/labtest"
)

// A cold switch is killed as SIGKILL kills, at each boundary between two effects
// on the world, each time on an instance of its own with data on all three tiers;
// applied again, it must end in the state of one that was never killed, and at no
// instant may a log id counter have been lower than before.
func TestASwitchKilledAnywhereIsFinishedByApplyingAgain(t *testing.T) {
	t.Parallel()
	lab := labtest.Start(t)
	counters := watchCounters(t, lab)

	whole := newSwitch(t, lab, 0)
	log := filepath.Join(t.TempDir(), "failpoints")
	if err := whole.apply("RUNBOOK_FAILPOINT_LOG=" + log); err != nil {
		t.Fatal(err)
	}
	whole.mustBeDone(t)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range []string{"woodpecker/", "objectstore/", "walreset/", "checkpointreset/", "claim/"} {
		if !strings.Contains(string(text), tier) {
			t.Fatalf("no boundary in %s:\n%s", tier, text)
		}
	}
	points := strings.Split(strings.TrimSpace(string(text)), "\n")
	t.Logf("%d kill points", len(points))
	t.Run("killed at", func(t *testing.T) {
		for i, point := range points {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				killedAndFinished(t, newSwitch(t, lab, i+1))
			})
		}
	})
	counters.neverWentDown(t, len(points)+1)
}

func killedAndFinished(t *testing.T, s *coldSwitch) {
	if err := s.apply(fmt.Sprintf("RUNBOOK_KILL_AT=%d", s.n)); !diedOf(err, syscall.SIGKILL) {
		t.Fatalf("not killed: %v", err)
	}
	marker, _, err := claim.Read(t.Context(), s.lab.EtcdClient(t), s.root)
	if err != nil {
		t.Fatal(err)
	}
	said, err := s.command().CombinedOutput()
	if err != nil {
		t.Fatalf("the dry run: %v\n%s", err, said)
	}
	if marker != nil && !strings.Contains(string(said), "left by run ") {
		t.Errorf("a dry run does not say that the instance is half done:\n%s", said)
	}
	if err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.mustBeDone(t)
}

const logsOfASwitch = 2

// coldSwitch is the n-th instance of a lab and the way to switch it.
type coldSwitch struct {
	lab              *labtest.Lab
	n                int
	root, objectRoot string
	stateDir         string
}

func newSwitch(t *testing.T, lab *labtest.Lab, n int) *coldSwitch {
	t.Helper()
	s := &coldSwitch{lab: lab, n: n, stateDir: t.TempDir(),
		root: fmt.Sprintf("killed-at-%d/by-dev", n), objectRoot: fmt.Sprintf("files-%d", n)}
	lab.Run(t, "seed", "--milvus", "--logs", strconv.Itoa(logsOfASwitch), "--segments", "1", "--root", s.root, "--object-root", s.objectRoot)
	return s
}

func (s *coldSwitch) apply(env ...string) error {
	cmd := s.command("--run", "--state-dir", s.stateDir)
	cmd.Env = append(cmd.Env, env...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

func (s *coldSwitch) command(flags ...string) *exec.Cmd {
	cmd := exec.Command("runbook", append([]string{"apply", "../plans/cold-switch.yaml",
		"--set", "rootPath=" + s.root, "--set", "objectRoot=" + s.objectRoot,
		"--set", "etcdEndpoints=" + strings.Join(s.lab.Etcd.Endpoints, ","), "--set", "objectEndpoint=" + s.lab.Objects.Endpoint}, flags...)...)
	cmd.Env = append(os.Environ(), "MINIO_ACCESS_KEY="+s.lab.Objects.Admin.Name, "MINIO_SECRET_KEY="+s.lab.Objects.Admin.Secret)
	return cmd
}

// mustBeDone has the lab look at every tier and every position; nothing of a run
// may be left in etcd.
func (s *coldSwitch) mustBeDone(t *testing.T) {
	t.Helper()
	s.lab.Run(t, "verify", "--root", s.root, "--object-root", s.objectRoot, "--counter", strconv.Itoa(logsOfASwitch))
	s.lab.Run(t, "verify-positions", "--root", s.root, "--target", "woodpecker")
	marker, holder, err := claim.Read(t.Context(), s.lab.EtcdClient(t), s.root)
	if err != nil || marker != nil || holder != nil {
		t.Errorf("left behind: marker %v, lock %v (%v)", marker, holder, err)
	}
}

// counterWatch follows the log id counter of every instance, change by change.
type counterWatch struct {
	mu   sync.Mutex
	last map[string]int64
	down []string
}

func watchCounters(t *testing.T, lab *labtest.Lab) *counterWatch {
	t.Helper()
	w := &counterWatch{last: map[string]int64{}}
	ctx, cancel := context.WithCancel(context.Background())
	changes := lab.EtcdClient(t).Watch(ctx, "killed-at-", clientv3.WithPrefix())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for response := range changes {
			for _, event := range response.Events {
				w.see(event)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *counterWatch) see(event *clientv3.Event) {
	key := string(event.Kv.Key)
	if !strings.HasSuffix(key, "/woodpecker/logidgen") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	value, err := strconv.ParseInt(string(event.Kv.Value), 10, 64)
	if event.Type == clientv3.EventTypeDelete || err != nil || value < w.last[key] {
		w.down = append(w.down, fmt.Sprintf("%s: %d, then %s %q", key, w.last[key], event.Type, event.Kv.Value))
	}
	w.last[key] = value
}

func (w *counterWatch) neverWentDown(t *testing.T, instances int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.last) != instances {
		t.Errorf("%d counters seen, want %d", len(w.last), instances)
	}
	for _, down := range w.down {
		t.Errorf("a log id counter went down: %s", down)
	}
}

func diedOf(err error, signal syscall.Signal) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}
