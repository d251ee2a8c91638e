package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func upCommand(l *lab) *cobra.Command {
	var detach bool
	command := &cobra.Command{
		Use:   "up",
		Short: "start a cluster; it ends with this program, or when its folder is removed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detach {
				return upDetached(cmd.Context(), cmd.OutOrStdout(), l.dir)
			}
			return up(cmd.Context(), cmd.OutOrStdout(), l.dir)
		},
	}
	command.Flags().BoolVar(&detach, "detach", false, "go on in the background once the cluster is ready")
	return command
}

func downCommand(l *lab) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "stop a cluster that was started with --detach",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), l.dir) },
	}
}

// up runs a cluster until ctx ends, a program of it ends, or its folder goes.
func up(ctx context.Context, out io.Writer, dir string) error {
	runtime.LockOSThread() // see startControlPlane
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := clearOld(dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	plane, err := startControlPlane(ctx, dir)
	if plane != nil {
		defer plane.stop()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	if err := standIns(ctx, plane, &loops); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, readyFile), nil, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(out, "kubernetes ready at %s\nexport KUBECONFIG=%s\n", plane.host, filepath.Join(dir, kubeconfigFile))
	return watchOver(ctx, plane)
}

// clearOld makes the folder, without what an earlier cluster left in it.
func clearOld(dir string) error {
	if _, running := owner(dir); running {
		return fmt.Errorf("a cluster runs in %s already", dir)
	}
	for _, old := range []string{"etcd", readyFile} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o700)
}

// standIns starts what plays scheduler, node and milvus-operator.
func standIns(ctx context.Context, plane *controlPlane, loops *sync.WaitGroup) error {
	c, err := plane.clients()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := apply(ctx, c, "", "crd.yaml", nil); err != nil {
		return err
	}
	port, err := (&forwarder{clients: c}).serve(ctx, plane.authority)
	if err != nil {
		return err
	}
	k := &kubelet{clients: c, pods: map[types.UID]*podState{}, log: log}
	if err := k.register(ctx, port); err != nil {
		return err
	}
	loops.Go(func() { k.run(ctx) })
	loops.Go(func() { (&operator{clients: c, log: log}).run(ctx) })
	// Pods can be made from here on: the API server serves the Milvus kind, and
	// the controller manager has made the default namespace's objects.
	return plane.wait(ctx, "the controller manager", func(ctx context.Context) error {
		if _, err := c.dynamic.Resource(milvusResource).List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		_, err := c.typed.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func watchOver(ctx context.Context, plane *controlPlane) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-plane.exited:
			plane.exited <- err
			return err
		case <-ticker.C:
			if _, err := os.Stat(plane.file(readyFile)); errors.Is(err, os.ErrNotExist) {
				return nil // a test that ended removed the folder
			}
		}
	}
}

// upDetached starts this program again in a session of its own and waits until
// the cluster answers.
func upDetached(ctx context.Context, out io.Writer, dir string) error {
	if err := clearOld(dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "up", "--dir", dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if err := waitForFile(ctx, filepath.Join(dir, readyFile), exited); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	text, err := os.ReadFile(log.Name())
	fmt.Fprint(out, string(text))
	return err
}

func waitForFile(ctx context.Context, path string, exited <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case err := <-exited:
			return fmt.Errorf("the cluster did not start: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the cluster did not start: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// owner is the program that runs the cluster of a folder. A process id may have
// gone to another program since, so its command line is looked at.
func owner(dir string) (pid int, running bool) {
	text, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(string(text))
	if err != nil || pid == os.Getpid() {
		return 0, false
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return pid, err == nil && strings.Contains(string(line), "runbook-kubelab\x00up\x00")
}

// down ends the program of a folder and waits until it is gone.
func down(ctx context.Context, dir string) error {
	pid, running := owner(dir)
	if !running {
		return fmt.Errorf("no cluster runs in %s", dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for running {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster in %s has not ended", dir)
		case <-ticker.C:
			_, running = owner(dir)
		}
	}
	return nil
}
