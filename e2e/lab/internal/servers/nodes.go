package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/zilliztech/woodpecker/common/config"
	"github.com/zilliztech/woodpecker/common/membership"
	"github.com/zilliztech/woodpecker/proto"
	"github.com/zilliztech/woodpecker/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"runbook/e2e/lab/internal/proxy"
	"runbook/e2e/lab/internal/state"
)

// NodesConfig is what all nodes of a lab have in common.
type NodesConfig struct {
	Ports           state.Ports
	Dirs            [state.NodeCount]string
	Objects         state.ObjectAccess
	ReclaimGrace    time.Duration
	ReclaimInterval time.Duration
}

// NodeState says what a client finds at a node's address.
type NodeState string

// A node is up, down (connection refused), or a black hole: it accepts
// connections and never answers, as behind a broken network policy.
const (
	NodeUp        NodeState = "up"
	NodeDown      NodeState = "down"
	NodeBlackHole NodeState = "black-hole"
)

// Node is one log-store node behind its proxy.
type Node struct {
	n     int // 1-based
	cfg   NodesConfig
	proxy *proxy.Proxy

	mu     sync.Mutex
	server *server.Server
	hole   *blackHole
}

// NewNode prepares node n (1-based).
func NewNode(n int, cfg NodesConfig) *Node {
	inner := hostPort(state.NodeAddress(n), cfg.Ports.NodeInner[n-1])
	return &Node{n: n, cfg: cfg, proxy: proxy.New(inner)}
}

// Endpoint is the address that clients use.
func (n *Node) Endpoint() string { return hostPort(state.NodeAddress(n.n), n.cfg.Ports.Node) }

// Proxy is what every call to the node passes.
func (n *Node) Proxy() *proxy.Proxy { return n.proxy }

// State says what a client finds now.
func (n *Node) State() NodeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.server != nil:
		return NodeUp
	case n.hole != nil:
		return NodeBlackHole
	default:
		return NodeDown
	}
}

// Start starts the node and its proxy. It returns when the node serves calls;
// membership converges later, see AwaitMembers.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server != nil {
		return nil
	}
	if n.hole != nil {
		n.hole.close()
		n.hole = nil
	}
	if err := n.startServer(ctx); err != nil {
		return fmt.Errorf("node %d: %w", n.n, err)
	}
	if err := n.proxy.Start(n.Endpoint()); err != nil {
		err = errors.Join(fmt.Errorf("node %d: %w", n.n, err), n.server.Stop())
		n.server = nil
		return err
	}
	return nil
}

func (n *Node) startServer(ctx context.Context) error {
	cfg, err := n.config()
	if err != nil {
		return err
	}
	// The node outlives the call that starts it.
	srv, err := server.NewServerWithConfig(context.WithoutCancel(ctx), cfg, n.membership(), n.gossipSeeds())
	if err != nil {
		return err
	}
	if err := srv.Prepare(); err != nil {
		return err
	}
	if err := srv.Run(); err != nil {
		return errors.Join(err, srv.Stop())
	}
	n.server = srv
	return nil
}

// Stop stops node and proxy; clients are refused from then on, or, with
// blackHole, accepted and never answered.
func (n *Node) Stop(blackHole bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hole != nil {
		n.hole.close()
		n.hole = nil
	}
	n.proxy.Stop()
	var err error
	if n.server != nil {
		err = n.server.Stop()
		n.server = nil
	}
	if blackHole {
		hole, holeErr := openBlackHole(n.Endpoint())
		n.hole, err = hole, errors.Join(err, holeErr)
	}
	return err
}

func (n *Node) config() (*config.Configuration, error) {
	cfg, err := config.NewConfiguration()
	if err != nil {
		return nil, err
	}
	dir := n.cfg.Dirs[n.n-1]
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(n.cfg.Objects.Endpoint)
	if err != nil {
		return nil, err
	}
	cfg.Minio.Address = host
	if cfg.Minio.Port, err = net.LookupPort("tcp", port); err != nil {
		return nil, err
	}
	cfg.Minio.AccessKeyID, cfg.Minio.SecretAccessKey = n.cfg.Objects.Admin.Name, n.cfg.Objects.Admin.Secret
	cfg.Minio.CreateBucket = false // bucket and root come with each call
	cfg.Minio.RequestTimeoutMs = config.DurationMilliseconds{Duration: config.NewDuration(30*time.Second, time.Millisecond)}
	cfg.Woodpecker.Storage.Type, cfg.Woodpecker.Storage.RootPath = "service", dir
	store := &cfg.Woodpecker.Logstore
	store.MaintenanceStrategy.DeleteGracePeriod = seconds(n.cfg.ReclaimGrace)
	store.MaintenanceStrategy.DeleteReclaimInterval = seconds(n.cfg.ReclaimInterval)
	// The machine's disk may be fuller than a production node would accept.
	store.DiskWatermarkPolicy.Enabled = false
	cfg.Log.Level, cfg.Log.File.RootPath = "error", ""
	return cfg, nil
}

func seconds(d time.Duration) config.DurationSeconds {
	return config.DurationSeconds{Duration: config.NewDuration(d, time.Second)}
}

// membership: woodpecker tells seeds apart by host alone, so each node's id
// must be its address. The advertised service address is the proxy's.
func (n *Node) membership() *membership.ServerConfig {
	address := state.NodeAddress(n.n)
	return &membership.ServerConfig{
		NodeID:   address,
		BindPort: n.cfg.Ports.Gossip[n.n-1], AdvertiseAddr: address, AdvertisePort: n.cfg.Ports.Gossip[n.n-1],
		ServicePort:          n.cfg.Ports.NodeInner[n.n-1],
		AdvertiseServiceAddr: address, AdvertiseServicePort: n.cfg.Ports.Node,
		ResourceGroup: "default", ClusterName: "runbook-lab", Region: "default", AZ: "default",
		Tags: map[string]string{"role": "logstore"},
	}
}

func (n *Node) gossipSeeds() []string {
	var seeds []string
	for i := range state.NodeCount {
		seeds = append(seeds, hostPort(state.NodeAddress(i+1), n.cfg.Ports.Gossip[i]))
	}
	return seeds
}

// AwaitMembers waits until the node itself knows want members, which it needs
// to know before a client can choose a quorum through it.
func (n *Node) AwaitMembers(ctx context.Context, want int) error {
	conn, err := grpc.NewClient("passthrough:///"+hostPort(state.NodeAddress(n.n), n.cfg.Ports.NodeInner[n.n-1]),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := proto.NewLogStoreClient(conn)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	seen := 0
	for {
		resp, err := client.SelectNodes(ctx, &proto.SelectNodesRequest{Filters: []*proto.NodeFilter{{}}})
		if err == nil {
			if seen = len(resp.GetNodes()); seen >= want {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("node %d knows %d of %d members: %w", n.n, seen, want, ctx.Err())
		}
	}
}

// blackHole accepts connections and says nothing.
type blackHole struct {
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func openBlackHole(address string) (*blackHole, error) {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	h := &blackHole{listener: l}
	h.wg.Go(h.accept)
	return h, nil
}

func (h *blackHole) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns = append(h.conns, conn)
		h.mu.Unlock()
	}
}

func (h *blackHole) close() {
	_ = h.listener.Close()
	h.wg.Wait()
	for _, conn := range h.conns {
		_ = conn.Close()
	}
}

// PortTaken reports whether err says that somebody else has the port.
func PortTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
