package instance

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"runbook/internal/woodpecker"
)

// nodeClients are the clients of log-store nodes, made as addresses become known.
type nodeClients struct {
	mu    sync.Mutex
	dial  woodpecker.Dialer
	nodes map[string]*woodpecker.Node
}

// DialNodesWith puts another way to connect to log-store nodes in place of plain
// TCP: a tunnel into the network that their addresses belong to. Call it before
// the first use of Node.
func (i *Instance) DialNodesWith(dial woodpecker.Dialer) {
	i.logStore.mu.Lock()
	defer i.logStore.mu.Unlock()
	i.logStore.dial = dial
}

// Node returns the client of the log-store node at host:port. The node is
// contacted when the client is first used.
func (i *Instance) Node(address string) (*woodpecker.Node, error) {
	c := &i.logStore
	c.mu.Lock()
	defer c.mu.Unlock()
	if node, ok := c.nodes[address]; ok {
		return node, nil
	}
	dial := c.dial
	if dial == nil {
		dial = plainTCP
		tunnel, err := i.tunnel()
		if err != nil {
			return nil, err
		}
		if tunnel != nil {
			dial = func(ctx context.Context, address string) (net.Conn, error) { return tunnel(ctx, "tcp", address) }
		}
	}
	node, err := woodpecker.NewNode(address, dial)
	if err != nil {
		return nil, err
	}
	if c.nodes == nil {
		c.nodes = map[string]*woodpecker.Node{}
	}
	c.nodes[address] = node
	return node, nil
}

// UsedNodes lists the addresses of which Node has made a client so far: what a
// later check can still ask once the metadata that named them is gone.
func (i *Instance) UsedNodes() []string {
	i.logStore.mu.Lock()
	defer i.logStore.mu.Unlock()
	var addresses []string
	for address := range i.logStore.nodes {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	return addresses
}

// plainTCP connects without a proxy: the nodes are in the same network, or behind a tunnel.
func plainTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

func (c *nodeClients) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, node := range c.nodes {
		errs = append(errs, node.Close())
	}
	c.nodes = nil
	return errors.Join(errs...)
}
