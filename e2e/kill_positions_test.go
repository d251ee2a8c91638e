package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runbook/internal/claim"
	"runbook/internal/labtest"
)

// A switch is killed as SIGKILL kills, at each boundary between two effects on the
// world, each time on an instance of its own; applied again, it must end in the
// state of one that was never killed, and leave no marker behind.
func TestASwitchKilledAnywhereIsFinishedByApplyingAgain(t *testing.T) {
	lab := labtest.Start(t)
	k := &killed{lab: lab, state: t.TempDir()}

	whole := filepath.Join(t.TempDir(), "failpoints")
	if err := k.apply(t, 0, "RUNBOOK_FAILPOINT_LOG="+whole); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	points := strings.Split(strings.TrimSpace(string(log)), "\n")
	if n := strings.Count(string(log), "checkpointreset/"); n < 7 {
		t.Fatalf("%d transactions among the boundaries, want one of each kind of key at least:\n%s", n, log)
	}
	for i, point := range points {
		t.Run(point, func(t *testing.T) {
			n := i + 1
			if err := k.apply(t, n, fmt.Sprintf("RUNBOOK_KILL_AT=%d", n)); !diedOf(err, syscall.SIGKILL) {
				t.Fatalf("not killed: %v", err)
			}
			if said := k.dryRun(t, n); strings.Contains(point, "checkpointreset/") && !strings.Contains(said, "left by run ") {
				t.Errorf("a dry run does not say that the instance is half done:\n%s", said)
			}
			if err := k.apply(t, n); err != nil {
				t.Fatal(err)
			}
			lab.Run(t, "verify-positions", "--root", root(n), "--target", "woodpecker")
			marker, holder, err := claim.Read(t.Context(), lab.EtcdClient(t), root(n))
			if err != nil || marker != nil || holder != nil {
				t.Errorf("left behind: marker %v, lock %v (%v)", marker, holder, err)
			}
		})
	}
}

type killed struct {
	lab    *labtest.Lab
	state  string
	seeded map[int]bool
}

func root(n int) string { return fmt.Sprintf("killed-at-%d/by-dev", n) }

// apply applies the cold switch to instance n, which it seeds the first time.
func (k *killed) apply(t *testing.T, n int, env ...string) error {
	t.Helper()
	if k.seeded == nil {
		k.seeded = map[int]bool{}
	}
	if !k.seeded[n] {
		k.lab.Run(t, "seed", "--only", "--milvus", "--root", root(n))
		k.seeded[n] = true
	}
	cmd := k.command(n, "--run", "--state-dir", k.state)
	cmd.Env = append(cmd.Env, env...)
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

func (k *killed) dryRun(t *testing.T, n int) string {
	t.Helper()
	said, err := k.command(n).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

func (k *killed) command(n int, flags ...string) *exec.Cmd {
	cmd := exec.Command("runbook", append([]string{"apply", "../plans/cold-switch.yaml",
		"--set", "rootPath=" + root(n), "--set", "whenNoWal=verify",
		"--set", "etcdEndpoints=" + strings.Join(k.lab.Etcd.Endpoints, ","), "--set", "objectEndpoint=" + k.lab.Objects.Endpoint}, flags...)...)
	cmd.Env = append(os.Environ(), "MINIO_ACCESS_KEY="+k.lab.Objects.Admin.Name, "MINIO_SECRET_KEY="+k.lab.Objects.Admin.Secret)
	return cmd
}

func diedOf(err error, signal syscall.Signal) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}
