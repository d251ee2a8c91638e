// Package lab is the lab process: it puts the servers together, starts them in
// an order in which each finds what it needs, answers the control endpoint and
// stops everything again. What goes into the servers is seed's business.
package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"path/filepath"
	"time"

	"github.com/zilliztech/woodpecker/common/logger"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"runbook/e2e/lab/internal/control"
	"runbook/e2e/lab/internal/proxy"
	"runbook/e2e/lab/internal/servers"
	"runbook/e2e/lab/internal/state"
)

// Lab is a running lab.
type Lab struct {
	state    *state.Lab
	etcd     *servers.Etcd
	objects  *servers.Objects
	nodes    []*servers.Node
	sessions *sessions
	standIns *standIns
	control  *control.Server
}

// Options say what lab to start.
type Options struct {
	Dir        string
	ObjectsDir string // where object data goes; empty: below Dir
	Settings   state.Settings
	Ports      state.Ports
}

// Start starts every server and writes lab.json once all of them answer.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if err := silence(o.Dir); err != nil {
		return nil, err
	}
	l, err := build(o)
	if err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// State is what lab.json says.
func (l *Lab) State() *state.Lab { return l.state }

// silence sends the servers' own logs to the lab's log file: they write to
// standard output or the standard logger, from packages that take no logger.
func silence(dir string) error {
	log.SetOutput(io.Discard)
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	cfg.OutputPaths, cfg.ErrorOutputPaths = []string{filepath.Join(dir, logFile)}, nil
	quiet, err := cfg.Build()
	if err != nil {
		return err
	}
	logger.ReplaceGlobals(quiet)
	return nil
}

// logFile is the log of everything in the lab but etcd.
const logFile = "lab.log"

func build(o Options) (*Lab, error) {
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	s := &state.Lab{
		Dir: o.Dir, Settings: o.Settings, Ports: o.Ports,
		Objects: state.ObjectAccess{
			Endpoint: fmt.Sprintf("127.0.0.1:%d", o.Ports.Objects), DataDir: o.ObjectsDir,
			Admin: state.Credential{Name: "labadmin", Secret: "labadminsecret1"},
			// Milvus's default credentials, but of a user whom bucket policies bind.
			Writer: state.Credential{Name: "minioadmin", Secret: "minioadmin"},
			Reader: state.Credential{Name: "reader", Secret: "readersecret1"},
		},
		Control: state.ControlAccess{Address: fmt.Sprintf("127.0.0.1:%d", o.Ports.Control), Token: hex.EncodeToString(token)},
	}
	if s.Objects.DataDir == "" {
		s.Objects.DataDir = filepath.Join(o.Dir, "objects")
	}
	l := &Lab{state: s, sessions: newSessions(s), standIns: newStandIns(s)}
	var tls *servers.TLSFiles
	if o.Settings.EtcdTLS {
		var err error
		if tls, err = servers.MakeTLS(filepath.Join(o.Dir, "tls")); err != nil {
			return nil, fmt.Errorf("etcd certificates: %w", err)
		}
	}
	l.etcd = servers.NewEtcd(filepath.Join(o.Dir, "etcd"), o.Ports, o.Settings.EtcdFsync, tls)
	s.Etcd = l.etcd.Access(o.Settings.EtcdAuth)
	l.objects = servers.NewObjects(servers.ObjectsConfig{
		Address: s.Objects.Endpoint, Dir: s.Objects.DataDir, Versioning: o.Settings.ObjectVersioning,
		Admin: s.Objects.Admin, Users: []state.Credential{s.Objects.Writer, s.Objects.Reader},
	}, filepath.Join(o.Dir, logFile))
	l.buildNodes(o)
	return l, nil
}

func (l *Lab) buildNodes(o Options) {
	cfg := servers.NodesConfig{
		Ports: o.Ports, Objects: l.state.Objects,
		ReclaimGrace: o.Settings.ReclaimGrace, ReclaimInterval: o.Settings.ReclaimInterval,
	}
	for n := range state.NodeCount {
		cfg.Dirs[n] = filepath.Join(o.Dir, "nodes", fmt.Sprint(n+1))
	}
	for n := range state.NodeCount {
		node := servers.NewNode(n+1, cfg)
		l.nodes = append(l.nodes, node)
		l.state.Nodes = append(l.state.Nodes, state.Node{N: n + 1, Endpoint: node.Endpoint(), DataDir: cfg.Dirs[n]})
	}
}

func (l *Lab) start(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.startEtcd(gctx) })
	g.Go(func() error {
		// Nodes look for their object store when they start.
		if err := l.objects.Start(gctx); err != nil {
			return err
		}
		return l.startNodes(gctx)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	var err error
	if l.control, err = control.Serve(l.state.Control.Address, l.state.Control.Token, l); err != nil {
		return fmt.Errorf("control endpoint: %w", err)
	}
	return nil
}

func (l *Lab) startEtcd(ctx context.Context) error {
	if err := l.etcd.Start(ctx); err != nil {
		return err
	}
	if !l.state.Settings.EtcdAuth {
		return nil
	}
	if err := servers.EnableAuth(ctx, l.state.Etcd); err != nil {
		return fmt.Errorf("etcd authentication: %w", err)
	}
	return nil
}

func (l *Lab) startNodes(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, node := range l.nodes {
		g.Go(func() error { return node.Start(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	for _, node := range l.nodes {
		g.Go(func() error { return node.AwaitMembers(gctx, len(l.nodes)) })
	}
	return g.Wait()
}

// Stop stops everything that runs.
func (l *Lab) Stop() error {
	var errs []error
	if l.control != nil {
		errs = append(errs, l.control.Close())
	}
	errs = append(errs, l.standIns.close(), l.sessions.close())
	g := new(errgroup.Group)
	g.Go(l.stopNodes)
	g.Go(func() error { return l.etcd.Stop() })
	errs = append(errs, g.Wait(), l.objects.Stop())
	return errors.Join(errs...)
}

// stopNodes stops one after the other: a node that leaves tells the others, and
// waits for seconds when they leave at the same time.
func (l *Lab) stopNodes() error {
	var errs []error
	for _, node := range l.nodes {
		errs = append(errs, node.Stop(false))
	}
	return errors.Join(errs...)
}

// nodeStartTimeout covers the slowest re-convergence seen, with room.
const nodeStartTimeout = 60 * time.Second

// Components says what runs.
func (l *Lab) Components() control.Components {
	c := control.Components{Etcd: l.etcd.Up(), Objects: l.objects.Up()}
	for _, n := range l.nodes {
		c.Nodes = append(c.Nodes, string(n.State()))
	}
	return c
}

func (l *Lab) node(n int) (*servers.Node, error) {
	if n < 1 || n > len(l.nodes) {
		return nil, fmt.Errorf("there is no node %d: nodes are 1 to %d", n, len(l.nodes))
	}
	return l.nodes[n-1], nil
}

// StopNode stops node n.
func (l *Lab) StopNode(n int, blackHole bool) error {
	node, err := l.node(n)
	if err != nil {
		return err
	}
	return node.Stop(blackHole)
}

// StartNode starts node n and waits until every running node knows every other.
func (l *Lab) StartNode(ctx context.Context, n int) error {
	node, err := l.node(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nodeStartTimeout)
	defer cancel()
	if err := node.Start(ctx); err != nil {
		return err
	}
	var running []*servers.Node
	for _, node := range l.nodes {
		if node.State() == servers.NodeUp {
			running = append(running, node)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, node := range running {
		g.Go(func() error { return node.AwaitMembers(gctx, len(running)) })
	}
	return g.Wait()
}

func member(n int) []int {
	if n == 0 {
		return nil
	}
	return []int{n - 1}
}

// StopEtcd stops a member, 0 for all.
func (l *Lab) StopEtcd(n int) error { return l.etcd.Stop(member(n)...) }

// StartEtcd starts a member, 0 for all.
func (l *Lab) StartEtcd(ctx context.Context, n int) error { return l.etcd.Start(ctx, member(n)...) }

// StopObjects stops the object store.
func (l *Lab) StopObjects() error { return l.objects.Stop() }

// StartObjects starts the object store.
func (l *Lab) StartObjects(ctx context.Context) error { return l.objects.Start(ctx) }

// StartSession registers a Milvus session that the lab keeps alive.
func (l *Lab) StartSession(ctx context.Context, s control.Session) (string, error) {
	return l.sessions.start(ctx, s)
}

// StopSession ends a session at once, as a clean stop does.
func (l *Lab) StopSession(ctx context.Context, s control.Session) error {
	return l.sessions.stop(ctx, s)
}

// StartStandIn starts a stand-in of Milvus's streaming node.
func (l *Lab) StartStandIn(ctx context.Context, s control.StandIn) (string, error) {
	return l.standIns.start(ctx, s)
}

// StopStandIn stops the stand-in of a root.
func (l *Lab) StopStandIn(ctx context.Context, root string) error { return l.standIns.stop(ctx, root) }

// RPCCounts returns calls by node endpoint and method.
func (l *Lab) RPCCounts(reset bool) map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for _, n := range l.nodes {
		out[n.Endpoint()] = n.Proxy().Counts()
		if reset {
			n.Proxy().ResetCounts()
		}
	}
	return out
}

// AddFault makes calls to node n fail.
func (l *Lab) AddFault(n int, f proxy.Fault) error {
	node, err := l.node(n)
	if err != nil {
		return err
	}
	return node.Proxy().AddFault(f)
}

// ClearFaults lets calls to node n through again.
func (l *Lab) ClearFaults(n int) error {
	node, err := l.node(n)
	if err != nil {
		return err
	}
	node.Proxy().ClearFaults()
	return nil
}
