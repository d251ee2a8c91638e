package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	//lint:ignore SA1019 client-go's own dialers still speak these types
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	upgrade "k8s.io/streaming/pkg/httpstream"

	"runbook/internal/fault"
)

const (
	// dialTimeout bounds opening one tunnel; a kubelet may accept and never answer.
	dialTimeout = 15 * time.Second
	// reasonTimeout is how long the end of the data waits for the reason of it.
	reasonTimeout = time.Second
)

// DialContext connects to an address as pods of the namespace write it, through
// the API server, and to any other address directly. A tunnel that dies fails
// the connection; dialling again finds the pod again, wherever it is by then.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	t, found, err := c.resolve(ctx, address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("tunnel to %s: %w", address, err)
	case !found:
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	}
	conn, err := c.dialPod(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("tunnel to %s: %w", address, err)
	}
	return conn, nil
}

// dialPod opens one tunnel of its own: streams that share one have no flow
// control between them, and one that is not read stalls the others.
func (c *Client) dialPod(ctx context.Context, t target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// The upgrade's own errors carry no API status; a pod that is gone and a
	// missing permission are told apart by asking for the pod first.
	var pod corev1.Pod
	if err := c.get(ctx, pods, t.pod, &pod); err != nil {
		return nil, err
	}
	connection, err := c.upgrade(ctx, t)
	if err != nil {
		return nil, err
	}
	return openTunnel(connection, t)
}

// upgrade turns a request into a stream connection: SPDY inside a websocket, or
// bare SPDY where the API server or something before it cannot do that.
func (c *Client) upgrade(ctx context.Context, t target) (httpstream.Connection, error) {
	dialer, err := c.dialer(t.pod)
	if err != nil {
		return nil, err
	}
	type result struct {
		connection httpstream.Connection
		err        error
	}
	done := make(chan result, 1) // the dialer takes no context
	go func() {
		connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- result{connection, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, c.explainUpgrade(r.err, t)
		}
		return r.connection, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.connection.Close()
			}
		}()
		return nil, fault.Fail("tunnel.no-answer", "the node of pod %s does not answer", t.pod).At(c.String()).Because(context.Cause(ctx)).
			Hint("check the node: kubectl%s get pod -n %s %s -o wide", c.contextFlag(), c.namespace, t.pod)
	}
}

func (c *Client) dialer(pod string) (httpstream.Dialer, error) {
	location := c.rest.Post().AbsPath(c.path(pods, pod, "portforward")).URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	bare := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, location)
	inWebsocket, err := portforward.NewSPDYOverWebsocketDialerWithLogger(klog.New(nil), location, c.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(inWebsocket, bare, func(err error) bool {
		return upgrade.IsUpgradeFailure(err) || upgrade.IsHTTPSProxyError(err)
	}), nil
}

func (c *Client) explainUpgrade(err error, t target) error {
	if strings.Contains(err.Error(), "orbidden") {
		return fault.Refuse("kube.forbidden", "not allowed to forward ports of pod %s", t.pod).At(c.String()).Because(err).
			Hint(`allow it in a Role: apiGroups [""], resources ["pods/portforward"], verbs ["get", "create"]`)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fault.Fail("tunnel.dial", "no tunnel to port %d of pod %s", t.port, t.pod).At(c.String()).Because(err).
		Hint("check the pod's node: kubectl%s get pod -n %s %s -o wide", c.contextFlag(), c.namespace, t.pod)
}

// openTunnel makes the stream pair of one forwarded connection.
func openTunnel(connection httpstream.Connection, t target) (net.Conn, error) {
	header := http.Header{}
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	header.Set(corev1.PortHeader, strconv.Itoa(t.port))
	header.Set(corev1.PortForwardRequestIDHeader, "1") // tells pairs of one connection apart; this is the only one
	failures, err := connection.CreateStream(header)
	if err != nil {
		connection.Close()
		return nil, err
	}
	failures.Close() // only read
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(header)
	if err != nil {
		connection.Close()
		return nil, err
	}
	near, far := net.Pipe() // a stream's own deadlines act on the whole connection
	tunnel := &tunnel{Conn: near, target: t, connection: connection, data: data, failures: failures}
	tunnel.copy(far)
	return tunnel, nil
}

// tunnel is one connection to one port of one pod.
type tunnel struct {
	net.Conn
	target     target
	connection httpstream.Connection
	data       httpstream.Stream
	failures   httpstream.Stream

	reason atomic.Pointer[error] // why the data ended; nil: the pod closed it
	close  sync.Once
}

// errTunnelLost says that the connection to the node went away.
var errTunnelLost = errors.New("the connection to the pod's node was lost")

func (t *tunnel) copy(far net.Conn) {
	explained := make(chan struct{})
	go func() {
		defer close(explained)
		if text, _ := io.ReadAll(t.failures); len(text) > 0 {
			t.fail(errors.New(strings.TrimSpace(string(text))))
		}
	}()
	go func() {
		io.Copy(far, t.data)
		select {
		case <-explained:
		case <-time.After(reasonTimeout):
		}
		select {
		case <-t.connection.CloseChan():
			t.fail(errTunnelLost)
		default:
		}
		far.Close()
	}()
	go func() {
		io.Copy(t.data, far)
		t.data.Close()
	}()
}

// fail keeps the first reason.
func (t *tunnel) fail(err error) {
	err = fmt.Errorf("port %d of pod %s: %w", t.target.port, t.target.pod, err)
	t.reason.CompareAndSwap(nil, &err)
}

// Read gives the reason in place of a bare end of file, where there is one.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if err == io.EOF {
		if reason := t.reason.Load(); reason != nil {
			return n, *reason
		}
	}
	return n, err
}

// Close ends both streams before the connection: without that, closing a
// connection inside a websocket waits for ever.
func (t *tunnel) Close() error {
	t.close.Do(func() {
		t.Conn.Close()
		t.data.Reset()
		t.failures.Reset()
		t.connection.RemoveStreams(t.data, t.failures)
		t.connection.Close()
	})
	return nil
}
