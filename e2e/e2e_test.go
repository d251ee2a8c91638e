// Package e2e drives the built programs from outside, as an operator does, and
// looks at real servers afterwards: keys in etcd, objects in the store, files on
// node disks. A scenario is one script under testdata, named after what it shows;
// a case from the field is named after the case. What the scripts can do beside
// testscript's own commands is listed in commands_test.go.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"runbook/internal/labtest"
)

// labsAtOnce bounds the labs that run at the same time: each takes up to 150 MB.
const labsAtOnce = 3

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// Scripts mostly wait, for leases, grace periods and deadlines.
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", fmt.Sprint(labsAtOnce+1))
	}
	bin, err := os.MkdirTemp("", "runbook-e2e-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(bin)
	if err := build(bin); err != nil {
		return failed(err)
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// build makes the two programs and puts them first in PATH. The runbook built
// here can be told to die at a boundary; see internal/failpoint.
func build(bin string) error {
	lab, err := labtest.Program()
	if err != nil {
		return err
	}
	if err := os.Symlink(lab, filepath.Join(bin, "runbook-lab")); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-tags", "failpoints", "-o", filepath.Join(bin, "runbook"), "./cmd/runbook")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build runbook: %w\n%s", err, text)
	}
	if err := os.Setenv("RUNBOOK_LAB", lab); err != nil { // what is built need not be built for each lab
		return err
	}
	return os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		Cmds:               commands(),
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Values[processesKey{}] = processes{}
			env.Setenv("PATH", os.Getenv("PATH"))
			env.Setenv("PLANS", filepath.Join(repo, "plans"))
			env.Setenv("WAL", filepath.Join(repo, "e2e", "testdata", "plans", "wal.yaml"))
			env.Setenv("POSITIONS", filepath.Join(repo, "e2e", "testdata", "plans", "positions.yaml"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
