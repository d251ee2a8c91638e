// Package servers starts and stops the real programs of the lab: etcd, the
// object store and the log-store nodes. Each type here is one server that can
// be stopped and started again on the same ports and data. What is put into
// them, and what is read from them, lives elsewhere.
package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"runbook/e2e/lab/internal/state"
)

// Etcd is the lab's etcd: one member or three in this process.
type Etcd struct {
	dir   string
	ports state.Ports
	fsync bool
	tls   *TLSFiles

	mu      sync.Mutex
	members []*embed.Etcd // nil where stopped
}

// NewEtcd prepares an etcd with a member for each client port.
func NewEtcd(dir string, ports state.Ports, fsync bool, tls *TLSFiles) *Etcd {
	return &Etcd{dir: dir, ports: ports, fsync: fsync, tls: tls, members: make([]*embed.Etcd, len(ports.Etcd))}
}

// Start starts the given members (0-based; none named: all that are stopped)
// and waits until each is ready. A member that has no quorum to join becomes
// ready later, so it is not waited for.
func (e *Etcd) Start(ctx context.Context, which ...int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	which, err := e.selected(which)
	if err != nil {
		return err
	}
	for _, m := range which {
		if e.members[m] != nil {
			continue
		}
		cfg, err := e.config(m)
		if err != nil {
			return err
		}
		if e.members[m], err = embed.StartEtcd(cfg); err != nil {
			return fmt.Errorf("etcd member %d: %w", m+1, err)
		}
	}
	running := 0
	for _, member := range e.members {
		if member != nil {
			running++
		}
	}
	if running <= len(e.members)/2 {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range which {
		g.Go(func() error { return awaitReady(gctx, e.members[m], m) })
	}
	return g.Wait()
}

func awaitReady(ctx context.Context, member *embed.Etcd, m int) error {
	var err error
	select {
	case <-member.Server.ReadyNotify():
		return nil
	case err = <-member.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	return fmt.Errorf("etcd member %d did not become ready: %w", m+1, err)
}

// Stop stops the given members; none named stops all.
func (e *Etcd) Stop(which ...int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	which, err := e.selected(which)
	if err != nil {
		return err
	}
	// One after the other: a leader hands over before it goes, and waits long
	// for a successor that goes at the same time.
	var errs []error
	for _, m := range which {
		if e.members[m] != nil {
			errs = append(errs, stopMember(e.members[m]))
			e.members[m] = nil
		}
	}
	return errors.Join(errs...)
}

// stopMember: Close waits for the client listeners to serve, which they never
// do on a member that did not become ready.
func stopMember(member *embed.Etcd) error {
	select {
	case <-member.Server.ReadyNotify():
		member.Close()
		return nil
	default:
	}
	member.Server.HardStop()
	var errs []error
	for _, l := range member.Clients {
		errs = append(errs, l.Close())
	}
	for _, l := range member.Peers {
		errs = append(errs, l.Listener.Close())
	}
	return errors.Join(errs...)
}

// Up says for each member whether it runs.
func (e *Etcd) Up() []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	up := make([]bool, len(e.members))
	for m := range e.members {
		up[m] = e.members[m] != nil
	}
	return up
}

func (e *Etcd) selected(which []int) ([]int, error) {
	if len(which) == 0 {
		for m := range e.members {
			which = append(which, m)
		}
	}
	for _, m := range which {
		if m < 0 || m >= len(e.members) {
			return nil, fmt.Errorf("etcd has %d member(s), there is no member %d", len(e.members), m+1)
		}
	}
	return which, nil
}

func (e *Etcd) config(m int) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name = memberName(m)
	cfg.Dir = filepath.Join(e.dir, cfg.Name)
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{filepath.Join(e.dir, cfg.Name+".log")}
	cfg.UnsafeNoFsync = !e.fsync
	cfg.EnableGRPCGateway = false // its connection to itself delays every stop
	if len(e.members) == 1 {
		// Nobody to elect against: a short tick only makes the start quicker.
		cfg.TickMs, cfg.ElectionMs = 20, 200
	}
	client := e.clientURL(m)
	peer := url.URL{Scheme: "http", Host: hostPort("127.0.0.1", e.ports.EtcdPeer[m])}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	var initial []string
	for i := range e.members {
		initial = append(initial, fmt.Sprintf("%s=http://%s", memberName(i), hostPort("127.0.0.1", e.ports.EtcdPeer[i])))
	}
	cfg.InitialCluster = strings.Join(initial, ",")
	if e.tls != nil {
		// An authority here would make etcd demand client certificates.
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: e.tls.Cert, KeyFile: e.tls.Key}
	}
	return cfg, os.MkdirAll(e.dir, 0o700)
}

func memberName(m int) string { return "member" + strconv.Itoa(m+1) }

func (e *Etcd) clientURL(m int) url.URL {
	scheme := "http"
	if e.tls != nil {
		scheme = "https"
	}
	return url.URL{Scheme: scheme, Host: hostPort("127.0.0.1", e.ports.Etcd[m])}
}

// Access is what clients need. Plain endpoints carry no scheme, the form in
// which Milvus's configuration writes them.
func (e *Etcd) Access(auth bool) state.EtcdAccess {
	var a state.EtcdAccess
	for m := range e.members {
		u := e.clientURL(m)
		if e.tls == nil {
			a.Endpoints = append(a.Endpoints, u.Host)
		} else {
			a.Endpoints = append(a.Endpoints, u.String())
		}
	}
	if e.tls != nil {
		a.CAFile = e.tls.CA
	}
	if auth {
		a.Root = &state.Credential{Name: "root", Secret: "rootsecret1"}
		a.Writer = &state.Credential{Name: "writer", Secret: "writersecret1"}
		a.Reader = &state.Credential{Name: "reader", Secret: "readersecret1"}
	}
	return a
}

// EnableAuth creates the users and turns authentication on; doing it twice is
// harmless, so that a resumed lab needs no other path.
func EnableAuth(ctx context.Context, access state.EtcdAccess) error {
	cfg := clientv3.Config{Endpoints: access.Endpoints, Context: ctx, Logger: zap.NewNop()}
	if access.CAFile != "" {
		var err error
		if cfg.TLS, err = ClientTLS(access.CAFile); err != nil {
			return err
		}
	}
	c, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := c.AuthStatus(ctx)
	if errors.Is(err, rpctypes.ErrUserEmpty) {
		return nil // on already: even this question wants a user
	}
	if err != nil || status.Enabled {
		return err
	}
	for _, role := range []struct {
		user *state.Credential
		name string
		perm clientv3.PermissionType
	}{
		{access.Root, "root", clientv3.PermissionType(clientv3.PermReadWrite)},
		{access.Writer, "readwrite-all", clientv3.PermissionType(clientv3.PermReadWrite)},
		{access.Reader, "read-all", clientv3.PermissionType(clientv3.PermRead)},
	} {
		if err := addUser(ctx, c, *role.user, role.name, role.perm); err != nil {
			return err
		}
	}
	_, err = c.AuthEnable(ctx)
	return err
}

func addUser(ctx context.Context, c *clientv3.Client, user state.Credential, role string, perm clientv3.PermissionType) error {
	if _, err := c.UserAdd(ctx, user.Name, user.Secret); err != nil {
		return fmt.Errorf("etcd user %s: %w", user.Name, err)
	}
	if _, err := c.RoleAdd(ctx, role); err != nil {
		return fmt.Errorf("etcd role %s: %w", role, err)
	}
	// "\x00" to "\x00" is etcd's spelling of every key.
	if _, err := c.RoleGrantPermission(ctx, role, "\x00", "\x00", perm); err != nil {
		return fmt.Errorf("etcd role %s: %w", role, err)
	}
	if _, err := c.UserGrantRole(ctx, user.Name, role); err != nil {
		return fmt.Errorf("etcd user %s: %w", user.Name, err)
	}
	return nil
}

// ClientTLS trusts the lab's own authority and nothing else.
func ClientTLS(caFile string) (*tls.Config, error) {
	info := transport.TLSInfo{TrustedCAFile: caFile}
	cfg, err := info.ClientConfig()
	if err != nil {
		return nil, errors.Join(errors.New("etcd certificate authority"), err)
	}
	return cfg, nil
}
