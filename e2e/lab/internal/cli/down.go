package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"runbook/e2e/lab/internal/state"
)

// stopTimeout is how long a lab may take to stop before it is killed: a node
// waits up to 10 s for its calls.
const stopTimeout = 25 * time.Second

func (a *app) downCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "down", Short: "stop a lab and remove its data", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.labDir()
			if err != nil {
				return err
			}
			return down(cmd, dir, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data; up in the same directory resumes it")
	return cmd
}

func down(cmd *cobra.Command, dir string, keep bool) error {
	l, err := state.Load(dir)
	if errors.Is(err, state.ErrNoLab) {
		return fmt.Errorf("%w, nothing to stop", err)
	}
	if err != nil {
		return err
	}
	running, err := state.Running(dir)
	if err != nil {
		return err
	}
	if running {
		// The lock proves that the process that wrote lab.json lives.
		if err := stopProcess(cmd.Context(), dir, l.PID); err != nil {
			return err
		}
	}
	if keep {
		l.Kept, l.PID = true, 0
		if err := l.Save(); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "stopped, data kept in %s\n", dir)
		return nil
	}
	if err := state.Clear(dir, l); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "stopped, data removed")
	return nil
}

func stopProcess(ctx context.Context, dir string, pid int) error {
	for _, s := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, stopTimeout}, {syscall.SIGKILL, 5 * time.Second}} {
		if err := syscall.Kill(pid, s.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", pid, err)
		}
		stopped, err := awaitStopped(ctx, dir, s.wait)
		if err != nil || stopped {
			return err
		}
	}
	return fmt.Errorf("process %d does not stop", pid)
}

func awaitStopped(ctx context.Context, dir string, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		running, err := state.Running(dir)
		if err != nil || !running {
			return err == nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}
