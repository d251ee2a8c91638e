package woodpecker

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// KnownNode is a log-store node that the metadata or the membership names.
type KnownNode struct {
	Address string
	ID      string   // empty when nothing says it
	Logs    []string // live and parked logs whose quorums name it
	Member  bool     // the membership names it
	// Err is why it could not be asked; nil when it answers.
	Err error
	// MovedTo is where the node with this ID answers now; Err is set then.
	MovedTo string
}

// Nodes finds every log-store node: those that the quorums in md name and those
// that the membership names, which each of them and each seed is asked for. md
// may be nil. Each node is asked once; that reads only.
//
// A seed that is no node's advertised address is only asked, not returned, unless
// it answers without naming any node: then it is the only thing known.
func Nodes(ctx context.Context, md *Metadata, seeds []string, open func(address string) (*Node, error)) ([]KnownNode, error) {
	d := discovery{open: open, known: map[string]*KnownNode{}, asked: map[string]error{}}
	d.fromQuorums(md)
	addresses := slices.Clone(seeds)
	for address := range d.known {
		addresses = append(addresses, address)
	}
	if err := d.ask(ctx, addresses); err != nil {
		return nil, err
	}
	var named []string // by the membership alone
	for address := range d.known {
		named = append(named, address)
	}
	if len(named) == 0 {
		for _, seed := range seeds {
			if d.asked[seed] == nil {
				d.node(seed)
			}
		}
	}
	if err := d.ask(ctx, named); err != nil {
		return nil, err
	}
	return d.result(), nil
}

type discovery struct {
	open  func(address string) (*Node, error)
	mu    sync.Mutex
	known map[string]*KnownNode
	asked map[string]error
}

func (d *discovery) node(address string) *KnownNode {
	if d.known[address] == nil {
		d.known[address] = &KnownNode{Address: address}
	}
	return d.known[address]
}

func (d *discovery) fromQuorums(md *Metadata) {
	if md == nil {
		return
	}
	for _, log := range slices.Concat(md.Logs, md.Headless) {
		for _, replica := range log.Nodes {
			node := d.node(replica.Address)
			node.ID = cmp.Or(node.ID, replica.ID)
			node.Logs = append(node.Logs, log.Name)
		}
	}
}

// ask asks each address that has not been asked yet for the membership.
func (d *discovery) ask(ctx context.Context, addresses []string) error {
	var open []string
	for _, address := range addresses {
		if _, done := d.asked[address]; !done {
			d.asked[address] = nil
			open = append(open, address)
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, address := range open {
		group.Go(func() error {
			members, err := d.members(groupCtx, address)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.asked[address] = err
			for _, member := range members {
				node := d.node(member.Address)
				node.ID, node.Member = cmp.Or(member.ID, node.ID), true
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}

func (d *discovery) members(ctx context.Context, address string) ([]Member, error) {
	node, err := d.open(address)
	if err != nil {
		return nil, err
	}
	members, err := node.Members(ctx)
	if err != nil && !Unreachable(err) {
		return nil, node.Ping(ctx) // it answers, though it cannot say who else there is
	}
	return members, err
}

func (d *discovery) result() []KnownNode {
	var nodes []KnownNode
	for _, node := range d.known {
		node.Err = d.asked[node.Address]
		nodes = append(nodes, *node)
	}
	for i, node := range nodes {
		if node.Err == nil || node.ID == "" {
			continue
		}
		for _, other := range nodes {
			if other.ID == node.ID && other.Member && d.asked[other.Address] == nil {
				nodes[i].MovedTo = other.Address
			}
		}
	}
	slices.SortFunc(nodes, func(a, b KnownNode) int { return cmp.Compare(a.Address, b.Address) })
	return nodes
}
