package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"

	"runbook/e2e/lab/internal/state"
)

// PortChoice is what the user asked for; zero means the well-known port, or a
// free one when Auto is set.
type PortChoice struct {
	Auto                                           bool
	Etcd, EtcdPeer, Objects, Node, Gossip, Control int
}

// Below Linux's ephemeral range: a port picked there may be taken by an
// outgoing connection before its server binds it.
const (
	autoFirst = 20000
	autoLast  = 31999
)

type portPicker struct {
	auto bool
	used map[int]bool
}

// ChoosePorts resolves every port of a lab and checks that all are free.
func ChoosePorts(choice PortChoice, members int) (state.Ports, error) {
	p := &portPicker{auto: choice.Auto, used: map[int]bool{}}
	var ports state.Ports
	var errs []error
	pick := func(what, flag string, asked, wellKnown int, hosts ...string) int {
		port, err := p.pick(what, flag, asked, wellKnown, hosts)
		errs = append(errs, err)
		return port
	}
	// The ports of etcd's own three-member example.
	clients, peers := []int{2379, 22379, 32379}, []int{2380, 22380, 32380}
	for m := range members {
		ports.Etcd = append(ports.Etcd, pick("etcd", "--etcd-port", offset(choice.Etcd, m), clients[m], "127.0.0.1"))
		ports.EtcdPeer = append(ports.EtcdPeer, pick("etcd peer", "--etcd-peer-port", offset(choice.EtcdPeer, m), peers[m], "127.0.0.1"))
	}
	ports.Objects = pick("object store", "--objects-port", choice.Objects, 9000, "127.0.0.1")
	ports.Node = pick("log-store node", "--node-port", choice.Node, 18080, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	for n := range state.NodeCount {
		ports.Gossip[n] = pick("gossip", "--gossip-port", offset(choice.Gossip, n), 17946+n, "0.0.0.0")
	}
	for n := range state.NodeCount {
		inner, err := (&portPicker{auto: true, used: p.used}).pick("log-store node", "", 0, 0, []string{"0.0.0.0"})
		errs = append(errs, err)
		ports.NodeInner[n] = inner
	}
	ports.Control = choice.Control
	if ports.Control == 0 {
		control, err := (&portPicker{auto: true, used: p.used}).pick("control", "--control-port", 0, 0, []string{"127.0.0.1"})
		errs = append(errs, err)
		ports.Control = control
	}
	err := errors.Join(errs...)
	if PortTaken(err) {
		err = fmt.Errorf("%w\nhint: --ports auto picks free ports, and each port has a flag", err)
	}
	return ports, err
}

// portTaken marks an error without adding to its text.
type portTaken struct{}

func (portTaken) Error() string { return "" }

func (portTaken) Is(target error) bool { return target == syscall.EADDRINUSE }

func offset(base, n int) int {
	if base == 0 {
		return 0
	}
	return base + n
}

func (p *portPicker) pick(what, flag string, asked, wellKnown int, hosts []string) (int, error) {
	if asked == 0 && p.auto {
		return p.free(hosts)
	}
	port := asked
	if port == 0 {
		port = wellKnown
	}
	for _, host := range hosts {
		if err := probe(host, port); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return 0, fmt.Errorf("port %d of %s is in use, wanted for %s (%s)%w", port, host, what, flag, portTaken{})
			}
			return 0, fmt.Errorf("port %d of %s (%s): %w", port, host, what, err)
		}
	}
	p.used[port] = true
	return port, nil
}

func (p *portPicker) free(hosts []string) (int, error) {
next:
	for range 200 {
		port := autoFirst + rand.IntN(autoLast-autoFirst+1)
		if p.used[port] {
			continue
		}
		for _, host := range hosts {
			if probe(host, port) != nil {
				continue next
			}
		}
		p.used[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port found between %d and %d", autoFirst, autoLast)
}

func probe(host string, port int) error {
	l, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
