// Package state is what a lab writes down about itself: lab.json, the file by
// which every other command finds a lab, and the lock that says whether the
// process that wrote it is still alive. No connection is opened here.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// EnvDir names the environment variable that chooses a lab.
const EnvDir = "RUNBOOK_LAB_DIR"

const (
	stateFile = "lab.json"
	lockFile  = "lab.lock"
)

// NodeCount is how many log-store nodes a lab has: woodpecker's default quorum.
const NodeCount = 3

// Credential is a name and the secret that proves it.
type Credential struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// Ports are the ports of every listener. Nodes share one service port because
// each has a loopback address of its own; gossip and the nodes' inner ports
// differ, since woodpecker binds those on every address.
type Ports struct {
	Etcd      []int          `json:"etcd"`
	EtcdPeer  []int          `json:"etcdPeer"`
	Objects   int            `json:"objects"`
	Node      int            `json:"node"`
	NodeInner [NodeCount]int `json:"nodeInner"`
	Gossip    [NodeCount]int `json:"gossip"`
	Control   int            `json:"control"`
}

// Settings are the choices made at `up`.
type Settings struct {
	EtcdFsync        bool          `json:"etcdFsync"`
	EtcdMembers      int           `json:"etcdMembers"`
	EtcdAuth         bool          `json:"etcdAuth"`
	EtcdTLS          bool          `json:"etcdTLS"`
	ObjectVersioning bool          `json:"objectVersioning"`
	ReclaimGrace     time.Duration `json:"reclaimGrace"`
	ReclaimInterval  time.Duration `json:"reclaimInterval"`
}

// EtcdAccess is what a client of the lab's etcd needs.
type EtcdAccess struct {
	Endpoints []string    `json:"endpoints"`
	CAFile    string      `json:"caFile,omitempty"`
	Root      *Credential `json:"root,omitempty"`
	Writer    *Credential `json:"writer,omitempty"`
	Reader    *Credential `json:"reader,omitempty"`
}

// ObjectAccess is what a client of the lab's object store needs. Admin bypasses
// every policy; Writer and Reader are bound by the bucket policies of seed.
type ObjectAccess struct {
	Endpoint string     `json:"endpoint"`
	Admin    Credential `json:"admin"`
	Writer   Credential `json:"writer"`
	Reader   Credential `json:"reader"`
	DataDir  string     `json:"dataDir"`
}

// Node is one log-store node: where clients reach it and where its disk is.
type Node struct {
	N        int    `json:"n"`
	Endpoint string `json:"endpoint"`
	DataDir  string `json:"dataDir"`
}

// ControlAccess is how the other commands ask the lab process for something.
type ControlAccess struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// Lab is the content of lab.json.
type Lab struct {
	Dir      string        `json:"dir"`
	PID      int           `json:"pid"`
	Kept     bool          `json:"kept,omitempty"` // stopped by `down --keep`; `up` resumes it
	Started  time.Time     `json:"started"`
	Settings Settings      `json:"settings"`
	Ports    Ports         `json:"ports"`
	Etcd     EtcdAccess    `json:"etcd"`
	Objects  ObjectAccess  `json:"objects"`
	Nodes    []Node        `json:"nodes"`
	Control  ControlAccess `json:"control"`
}

// NodeSeeds lists the addresses at which clients reach the nodes.
func (l *Lab) NodeSeeds() []string {
	seeds := make([]string, 0, len(l.Nodes))
	for _, n := range l.Nodes {
		seeds = append(seeds, n.Endpoint)
	}
	return seeds
}

// NodeAddress is the loopback address of node n (1-based).
func NodeAddress(n int) string { return "127.0.0." + strconv.Itoa(n) }

// LocalDir is where logs of storage type local live unless told otherwise.
func (l *Lab) LocalDir() string { return filepath.Join(l.Dir, "local") }

// DefaultDir is the lab used when neither --dir nor the environment names one.
func DefaultDir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no --dir given and no home directory: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "runbook-lab", "default"), nil
}

// ErrNoLab says that a directory holds no lab.
var ErrNoLab = errors.New("no lab here")

// Load reads the lab.json of dir.
func Load(dir string) (*Lab, error) {
	raw, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLab)
	}
	if err != nil {
		return nil, err
	}
	var lab Lab
	if err := json.Unmarshal(raw, &lab); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	return &lab, nil
}

// Save replaces the lab.json atomically; it holds secrets, hence the mode.
func (l *Lab) Save() error {
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(l.Dir, stateFile)
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Lock is held by the lab process for as long as it lives, so that a crashed
// lab is told from a running one without trusting a process id.
type Lock struct{ file *os.File }

// ErrLocked says that a lab runs in the directory.
var ErrLocked = errors.New("a lab is running in this directory")

// Acquire takes the lock of dir, which must exist.
func Acquire(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &Lock{file: f}, nil
}

// Release gives the lock back.
func (l *Lock) Release() error { return l.file.Close() }

// Running reports whether a lab process holds the lock of dir.
func Running(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := Acquire(dir)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Release()
}

// owned are the names a lab gives its files.
func owned() []string {
	return []string{"etcd", "objects", "nodes", "local", "tls", "lab.log", stateFile, stateFile + ".tmp", lockFile}
}

// Owns reports whether a file of that name in a lab's directory is the lab's.
func Owns(name string) bool { return slices.Contains(owned(), name) }

// ClearData removes a lab's data but leaves the lock and the log.
func ClearData(dir string, lab *Lab) error {
	return clearNames(dir, lab, func(name string) bool { return name != lockFile && name != "lab.log" })
}

// Clear removes what a lab put into dir and, when nothing else is there, dir
// itself. Other files are left alone: --dir may name a directory of the user's.
func Clear(dir string, lab *Lab) error {
	err := clearNames(dir, lab, func(string) bool { return true })
	if rmErr := os.Remove(dir); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) && !errors.Is(rmErr, syscall.ENOTEMPTY) {
		err = errors.Join(err, rmErr)
	}
	return err
}

func clearNames(dir string, lab *Lab, which func(string) bool) error {
	var errs []error
	for _, name := range owned() {
		if which(name) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	if lab != nil && lab.Objects.DataDir != "" {
		errs = append(errs, os.RemoveAll(lab.Objects.DataDir))
	}
	return errors.Join(errs...)
}
