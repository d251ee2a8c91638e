package kube_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// echo is a server that the lab's pods stand for.
type echo struct {
	listener net.Listener
	name     string
}

// startEcho answers every line with its name and the line.
func startEcho(l *lab, name string) *echo {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	e := &echo{listener, name}
	l.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				buffer := make([]byte, 1<<16)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						conn.Close()
						return
					}
					conn.Write(append([]byte(name+":"), buffer[:n]...))
				}
			}()
		}
	}()
	return e
}

func (e *echo) address() string { return e.listener.Addr().String() }

// say sends a text through a new tunnel and returns the answer.
func say(l *lab, dial func(context.Context, string, string) (net.Conn, error), address, text string) string {
	l.Helper()
	conn, err := dial(l.Context(), "tcp", address)
	if err != nil {
		return "dial: " + err.Error()
	}
	defer conn.Close()
	return exchange(conn, text)
}

func exchange(conn net.Conn, text string) string {
	conn.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		return "write: " + err.Error()
	}
	buffer := make([]byte, 1<<16)
	n, err := conn.Read(buffer)
	if err != nil {
		return "read: " + err.Error()
	}
	return string(buffer[:n])
}

func tunnels(_ *testing.T, l *lab) {
	etcd, node0, node1 := startEcho(l, "etcd"), startEcho(l, "node0"), startEcho(l, "node1")
	l.run("install", "--etcd", etcd.address(), "--node", node0.address(), "--node", node1.address())
	c := l.client()
	outside := startEcho(l, "outside")
	for address, want := range map[string]string{
		"my-release-etcd:2379":                                       "etcd:x",
		"my-release-etcd." + l.namespace + ":2379":                   "etcd:x",
		"my-release-etcd." + l.namespace + ".svc:2379":               "etcd:x",
		"my-release-etcd." + l.namespace + ".svc.cluster.local:2379": "etcd:x",
		"my-release-milvus-woodpecker-1.my-release-milvus-woodpecker-headless." + l.namespace + ".svc.cluster.local:18080": "node1:x",
		"my-release-milvus-woodpecker-0.my-release-milvus-woodpecker-headless:18080":                                       "node0:x",
		podIP(l, "my-release-milvus-woodpecker-1") + ":18080":                                                              "node1:x",
		outside.address():       "outside:x",
		"my-release-minio:9000": "nothing listens on port 9000 of pod my-release-minio-0",
		"my-release-milvus-woodpecker-9.my-release-milvus-woodpecker-headless:18080": "there is no pod my-release-milvus-woodpecker-9",
		"10.244.99.99:18080": "the pod that had it has moved",
	} {
		if got := say(l, c.DialContext, address, "x"); !strings.Contains(got, want) {
			l.Errorf("%s answers %q, want %q", address, got, want)
		}
	}
	movedNode(l, c.DialContext, node1)
	diesMidStream(l, c.DialContext, node0)
	forbiddenTunnel(l)
	leavesNothingBehind(l, c.DialContext)
}

func podIP(l *lab, pod string) string {
	l.Helper()
	match := regexp.MustCompile(pod + `\s.*\s([0-9.]+)\n`).FindStringSubmatch(l.run("pods"))
	if match == nil {
		l.Fatalf("no pod %s", pod)
	}
	return match[1]
}

// A node that moves has another address afterwards and the same name; the tunnel
// that was open into it ends and does not hang.
func movedNode(l *lab, dial func(context.Context, string, string) (net.Conn, error), node1 *echo) {
	l.Helper()
	const pod = "my-release-milvus-woodpecker-1"
	name := pod + ".my-release-milvus-woodpecker-headless:18080"
	old := podIP(l, pod)
	conn, err := dial(l.Context(), "tcp", name)
	if err != nil {
		l.Fatal(err)
	}
	defer conn.Close()
	if got := exchange(conn, "x"); got != "node1:x" {
		l.Fatalf("before the move: %q", got)
	}
	l.run("delete-pod", pod)
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		l.Errorf("the tunnel into a pod that is gone says %v", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	got := ""
	for time.Now().Before(deadline) {
		if got = say(l, dial, name, "x"); got == "node1:x" && podIP(l, pod) != old {
			break
		}
		time.Sleep(100 * time.Millisecond) // between two looks at what the cluster has come to
	}
	if got != "node1:x" {
		l.Errorf("after the move: %q", got)
	}
	if got := say(l, dial, old+":18080", "x"); !strings.Contains(got, "moved") {
		l.Errorf("the old address answers %q", got)
	}
}

// The server behind a tunnel ends in the middle: the reader hears of it.
func diesMidStream(l *lab, dial func(context.Context, string, string) (net.Conn, error), node0 *echo) {
	l.Helper()
	const name = "my-release-milvus-woodpecker-0.my-release-milvus-woodpecker-headless:18080"
	node0.listener.Close()
	if got := say(l, dial, name, "x"); !strings.Contains(got, "connection refused") {
		l.Errorf("a port that nobody listens on answers %q", got)
	}
}

func forbiddenTunnel(l *lab) {
	l.Helper()
	path := filepath.Join(l.TempDir(), "reader")
	l.run("user", "reader", "--out", path, "--allow", "/pods,services:get,list")
	got := say(l, l.clientOf(path).DialContext, "my-release-etcd:2379", "x")
	if !strings.Contains(got, "not allowed to forward ports of pod my-release-etcd-0") {
		l.Errorf("without the permission it says %q", got)
	}
	// The verb of SPDY alone is enough: a websocket needs get too, and is given up for it.
	spdy := filepath.Join(l.TempDir(), "spdy")
	l.run("user", "spdy", "--out", spdy, "--allow", "/pods,services:get,list", "--allow", "/pods/portforward:create")
	if got := say(l, l.clientOf(spdy).DialContext, "my-release-etcd:2379", "x"); got != "etcd:x" {
		l.Errorf("with create alone it says %q", got)
	}
}

// Tunnels that were closed leave no connection and no goroutine.
func leavesNothingBehind(l *lab, dial func(context.Context, string, string) (net.Conn, error)) {
	l.Helper()
	for range 20 {
		conn, err := dial(l.Context(), "tcp", "my-release-etcd:2379")
		if err != nil {
			l.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			l.Error(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != io.ErrClosedPipe {
			l.Errorf("a closed tunnel reads %v", err)
		}
	}
}
