package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"runbook/e2e/lab/internal/state"
)

// ObjectsCommand is the hidden command that makes this binary the object
// store's process. versitygw changes its working directory and keeps
// package-level state, so it gets a process of its own.
const ObjectsCommand = "serve-objects"

// ObjectsConfig is what the parent tells the child on its standard input.
type ObjectsConfig struct {
	Address    string             `json:"address"`
	Dir        string             `json:"dir"`
	Versioning bool               `json:"versioning"`
	Admin      state.Credential   `json:"admin"`
	Users      []state.Credential `json:"users"`
}

const objectsHealth = "/healthz"

// maxCopy is S3's own limit; versitygw's library default allows no copy at all.
const maxCopy = 5 << 30

// Objects is the lab's object store, seen from the lab process.
type Objects struct {
	cfg     ObjectsConfig
	logPath string

	mu    sync.Mutex
	child *objectsChild
}

type objectsChild struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan struct{} // closed when the process is gone
}

// NewObjects prepares an object store; its output goes to logPath.
func NewObjects(cfg ObjectsConfig, logPath string) *Objects {
	return &Objects{cfg: cfg, logPath: logPath}
}

// Start starts the child and waits until it answers.
func (o *Objects) Start(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runningLocked() {
		return nil
	}
	child, err := o.spawn()
	if err != nil {
		return fmt.Errorf("object store: %w", err)
	}
	if err := o.awaitReady(ctx, child); err != nil {
		return errors.Join(err, child.stop())
	}
	o.child = child
	return nil
}

func (o *Objects) spawn() (*objectsChild, error) {
	logFile, err := os.OpenFile(o.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command("/proc/self/exe", ObjectsCommand)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = logFile, logFile
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	child := &objectsChild{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	go func() {
		defer close(child.exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	if err := json.NewEncoder(stdin).Encode(o.cfg); err != nil {
		return nil, errors.Join(err, child.stop())
	}
	return child, nil
}

func (o *Objects) awaitReady(ctx context.Context, child *objectsChild) error {
	client := &http.Client{Timeout: time.Second}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := client.Get("http://" + o.cfg.Address + objectsHealth)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-child.exited:
			return fmt.Errorf("object store ended at start: see %s", o.logPath)
		case <-ctx.Done():
			return fmt.Errorf("object store at %s is not ready: %w", o.cfg.Address, ctx.Err())
		}
	}
}

// Stop ends the child.
func (o *Objects) Stop() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.child == nil {
		return nil
	}
	err := o.child.stop()
	o.child = nil
	return err
}

// Up reports whether the child runs.
func (o *Objects) Up() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runningLocked()
}

func (o *Objects) runningLocked() bool {
	if o.child == nil {
		return false
	}
	select {
	case <-o.child.exited:
		return false
	default:
		return true
	}
}

// stop kills the child. A graceful end would wait for the idle connections of
// every client, and what versitygw answered for is in place already.
func (c *objectsChild) stop() error {
	_ = c.stdin.Close()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("object store: %w", err)
	}
	<-c.exited
	return nil
}

// ServeObjects is the child: it serves until its standard input ends. The pipe
// breaks however the parent ends, also by SIGKILL, so no child outlives a lab.
func ServeObjects(ctx context.Context, stdin io.Reader) error {
	var cfg ObjectsConfig
	in := json.NewDecoder(stdin)
	if err := in.Decode(&cfg); err != nil {
		return fmt.Errorf("object store settings: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
	}()
	return runGateway(ctx, cfg)
}

func runGateway(ctx context.Context, cfg ObjectsConfig) error {
	buckets, iamDir := filepath.Join(cfg.Dir, "buckets"), filepath.Join(cfg.Dir, "iam")
	opts := posix.PosixOpts{Concurrency: 64, CopyObjectThreshold: maxCopy}
	dirs := []string{buckets, iamDir}
	if cfg.Versioning {
		opts.VersioningDir = filepath.Join(cfg.Dir, "versions")
		dirs = append(dirs, opts.VersioningDir)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	iam, err := auth.NewInternal(auth.Account{Access: cfg.Admin.Name, Secret: cfg.Admin.Secret, Role: auth.RoleAdmin}, iamDir)
	if err != nil {
		return err
	}
	for _, u := range cfg.Users {
		err := iam.CreateAccount(auth.Account{Access: u.Name, Secret: u.Secret, Role: auth.RoleUser})
		if err != nil && !errors.Is(err, auth.ErrUserExists) {
			return fmt.Errorf("object store user %s: %w", u.Name, err)
		}
	}
	// xattr, never nometa: without metadata conditional puts are not atomic.
	disk, err := posix.New(buckets, meta.XattrMeta{}, opts)
	if err != nil {
		return err
	}
	defer disk.Shutdown()
	return embedgw.RunVersityGW(ctx, verbatimKeys{disk}, &embedgw.Config{
		RootUserAccess: cfg.Admin.Name, RootUserSecret: cfg.Admin.Secret,
		Ports:          []string{cfg.Address},
		MaxConnections: 4096, MaxRequests: 2048, MultipartMaxParts: 10000,
		KeepAlive: true, Quiet: true, HealthPath: objectsHealth,
		IAMService: iam,
	})
}
