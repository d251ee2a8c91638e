package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"runbook/e2e/lab/internal/lab"
	"runbook/e2e/lab/internal/servers"
	"runbook/e2e/lab/internal/state"
)

// startTimeout bounds a start on a machine that does much else.
const startTimeout = 90 * time.Second

type upFlags struct {
	detach     bool
	ports      string
	choice     servers.PortChoice
	settings   state.Settings
	objectsDir string
	pdeathsig  bool

	// Set by a detaching parent for the child it starts.
	readyFD  int
	watchPID int
}

func (a *app) upCommand() *cobra.Command {
	var u upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start a lab",
		Long: "Start etcd, the object store and three log-store nodes. Without --detach the lab\n" +
			"runs in the foreground until interrupted; its data stays until down or the next up.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := u.check(); err != nil {
				return err
			}
			dir, err := a.labDir()
			if err != nil {
				return err
			}
			if u.detach {
				return u.runDetached(cmd, dir)
			}
			return u.run(cmd, dir)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&u.detach, "detach", false, "run in the background; return when the lab is ready")
	f.StringVar(&u.ports, "ports", "known", "known (2379, 9000, 18080, 17946) or auto (free ones)")
	f.IntVar(&u.choice.Etcd, "etcd-port", 0, "client port of etcd; further members count up")
	f.IntVar(&u.choice.EtcdPeer, "etcd-peer-port", 0, "peer port of etcd; further members count up")
	f.IntVar(&u.choice.Objects, "objects-port", 0, "port of the object store")
	f.IntVar(&u.choice.Node, "node-port", 0, "port of the nodes, on 127.0.0.1, .2 and .3")
	f.IntVar(&u.choice.Gossip, "gossip-port", 0, "first of the nodes' three gossip ports")
	f.IntVar(&u.choice.Control, "control-port", 0, "port of the lab's control endpoint (default a free one)")
	f.BoolVar(&u.settings.EtcdFsync, "etcd-fsync", false, "let etcd sync its log to disk")
	f.IntVar(&u.settings.EtcdMembers, "etcd-members", 1, "members of etcd: 1 or 3")
	f.BoolVar(&u.settings.EtcdAuth, "etcd-auth", false, "etcd authentication with users root, writer and reader")
	f.BoolVar(&u.settings.EtcdTLS, "etcd-tls", false, "etcd with TLS under an authority of the lab's own")
	f.BoolVar(&u.settings.ObjectVersioning, "object-versioning", false, "buckets made by seed are versioned")
	f.StringVar(&u.objectsDir, "objects-dir", "", "put object data below this directory, such as /dev/shm")
	f.DurationVar(&u.settings.ReclaimGrace, "reclaim-grace", time.Second, "time between a node's mark and its reclaim (5s upstream)")
	f.DurationVar(&u.settings.ReclaimInterval, "reclaim-interval", 100*time.Millisecond, "time between a node's reclaim passes (2s upstream)")
	f.BoolVar(&u.pdeathsig, "pdeathsig", false, "stop and remove the lab when the process that ran this command ends")
	f.IntVar(&u.readyFD, "ready-fd", 0, "")
	f.IntVar(&u.watchPID, "watch-pid", 0, "")
	_ = f.MarkHidden("ready-fd")
	_ = f.MarkHidden("watch-pid")
	return cmd
}

func (u *upFlags) check() error {
	switch u.ports {
	case "auto", "known":
		u.choice.Auto = u.ports == "auto"
	default:
		return usagef("--ports %q: want known or auto", u.ports)
	}
	if u.settings.EtcdMembers != 1 && u.settings.EtcdMembers != 3 {
		return usagef("--etcd-members %d: want 1 or 3", u.settings.EtcdMembers)
	}
	if u.settings.ReclaimGrace <= 0 || u.settings.ReclaimInterval <= 0 {
		return usagef("--reclaim-grace and --reclaim-interval must be positive")
	}
	if u.readyFD != 0 {
		// The object store's process must not keep the parent waiting.
		syscall.CloseOnExec(u.readyFD)
	}
	if u.pdeathsig && u.watchPID == 0 {
		u.watchPID = os.Getppid()
	}
	return nil
}

// runDetached starts this command again in the background and waits for word
// that the lab is ready.
func (u *upFlags) runDetached(cmd *cobra.Command, dir string) error {
	if running, err := state.Running(dir); err != nil || running {
		return errors.Join(err, alreadyRunning(dir, running))
	}
	if err := prepare(dir); err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "lab.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	ready, word, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return strings.HasPrefix(arg, "--detach") })
	args = append(args, "--dir", dir, "--ready-fd", "3")
	if u.watchPID != 0 {
		args = append(args, "--watch-pid", fmt.Sprint(u.watchPID))
	}
	child := exec.Command("/proc/self/exe", args...)
	child.Args[0] = os.Args[0]
	child.Stdout, child.Stderr, child.ExtraFiles = logFile, logFile, []*os.File{word}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return errors.Join(err, word.Close())
	}
	if err := word.Close(); err != nil {
		return err
	}
	// An interrupted start ends the lab too, which then closes the pipe.
	stop := context.AfterFunc(cmd.Context(), func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	answer, err := io.ReadAll(ready)
	if err != nil {
		return err
	}
	var failure string
	if err := json.Unmarshal(answer, &failure); err != nil {
		return fmt.Errorf("the lab ended at start: see %s", logFile.Name())
	}
	if failure != "" {
		_ = child.Wait()
		return errors.New(failure)
	}
	l, err := state.Load(dir)
	if err != nil {
		return err
	}
	printEndpoints(cmd.OutOrStdout(), l)
	return child.Process.Release()
}

// run is the lab process.
func (u *upFlags) run(cmd *cobra.Command, dir string) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if u.watchPID != 0 {
		if err := watch(ctx, u.watchPID, cancel); err != nil {
			return err
		}
	}
	l, lock, err := u.start(ctx, dir)
	if reportErr := u.report(err); reportErr != nil {
		err = errors.Join(err, reportErr)
	}
	if err != nil {
		return err
	}
	if u.readyFD == 0 {
		printEndpoints(cmd.OutOrStdout(), l.State())
	}
	<-ctx.Done()
	say(cmd)("stopping")
	err = l.Stop()
	if cmd.Context().Err() == nil {
		// The process that wanted the lab is gone, and nobody will run down.
		err = errors.Join(err, state.Clear(dir, l.State()))
	}
	return errors.Join(err, lock.Release())
}

func (u *upFlags) start(ctx context.Context, dir string) (*lab.Lab, *state.Lock, error) {
	if err := prepare(dir); err != nil {
		return nil, nil, err
	}
	lock, err := state.Acquire(dir)
	if errors.Is(err, state.ErrLocked) {
		return nil, nil, alreadyRunning(dir, true)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := u.startLocked(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release())
	}
	return l, lock, nil
}

func (u *upFlags) startLocked(ctx context.Context, dir string) (*lab.Lab, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	earlier, err := leftover(dir)
	if err != nil {
		return nil, err
	}
	o := lab.Options{Dir: dir, Settings: u.settings}
	if u.objectsDir != "" {
		// Several labs may share the directory given.
		sum := sha256.Sum256([]byte(dir))
		o.ObjectsDir = filepath.Join(u.objectsDir, "runbook-lab-"+hex.EncodeToString(sum[:6]))
	}
	// Between choosing a port and binding it somebody else may take it.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		if earlier != nil {
			// Segments record node addresses, so kept data wants the ports it had.
			o.Settings, o.Ports, o.ObjectsDir = earlier.Settings, earlier.Ports, earlier.Objects.DataDir
		} else if o.Ports, err = servers.ChoosePorts(u.choice, u.settings.EtcdMembers); err != nil {
			return nil, errors.Join(err, state.Clear(dir, nil))
		}
		l, err := lab.Start(ctx, o)
		if err == nil {
			l.State().PID, l.State().Started = os.Getpid(), time.Now().UTC()
			return l, l.State().Save()
		}
		if earlier != nil {
			return nil, err
		}
		if err := errors.Join(err, state.ClearData(dir, nil)); !u.choice.Auto || !servers.PortTaken(err) || attempt == attempts {
			return nil, err
		}
	}
}

// leftover returns the lab that `down --keep` left in dir, and clears away one
// that died.
func leftover(dir string) (*state.Lab, error) {
	l, err := state.Load(dir)
	if err != nil && !errors.Is(err, state.ErrNoLab) {
		return nil, err
	}
	if l != nil && l.Kept {
		return l, nil
	}
	// Without a lab.json: one that died before it was up.
	return nil, state.ClearData(dir, l)
}

// prepare makes dir, and refuses one that holds something else.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !state.Owns(e.Name()) {
			return fmt.Errorf("%s holds %s, which is not a lab's\nhint: choose an empty or new directory with --dir", dir, e.Name())
		}
	}
	return nil
}

func alreadyRunning(dir string, running bool) error {
	if !running {
		return nil
	}
	return fmt.Errorf("a lab runs in %s\nhint: runbook-lab down stops it, another --dir starts one beside it", dir)
}

// report tells a detaching parent how the start ended.
func (u *upFlags) report(failure error) error {
	if u.readyFD == 0 {
		return nil
	}
	word := os.NewFile(uintptr(u.readyFD), "ready")
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	return errors.Join(json.NewEncoder(word).Encode(text), word.Close())
}

// watch calls gone when the process pid ends. A death signal of the kernel
// would follow the thread that started us, and a detached lab has no parent.
func watch(ctx context.Context, pid int, gone func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	go func() {
		defer unix.Close(fd)
		for ctx.Err() == nil {
			const lookAgain = 1000 // ms, so that the watch ends with ctx
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, lookAgain)
			if n > 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
				gone()
				return
			}
		}
	}()
	return nil
}

func printEndpoints(w io.Writer, l *state.Lab) {
	fmt.Fprintf(w, "lab      %s\n", l.Dir)
	fmt.Fprintf(w, "etcd     %s\n", strings.Join(l.Etcd.Endpoints, ","))
	fmt.Fprintf(w, "objects  %s\n", l.Objects.Endpoint)
	fmt.Fprintf(w, "nodes    %s\n", strings.Join(l.NodeSeeds(), ","))
}

func absolute(dir string) (string, error) { return filepath.Abs(dir) }
