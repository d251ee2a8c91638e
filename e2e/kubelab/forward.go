package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

const (
	forwardIdle   = 4 * time.Hour
	forwardCreate = 30 * time.Second
)

// forwarder is the port of a kubelet that the API server hands port forwarding to.
type forwarder struct {
	clients *clients
}

// serve answers until ctx ends. The API server speaks TLS to a kubelet and takes
// any certificate.
func (f *forwarder) serve(ctx context.Context, a *authority) (port int, err error) {
	cert, key, err := a.issue(nodeName, nil, time.Now().Add(certificateLife))
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", f.handle) // POST for SPDY, GET for a websocket
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}}
	go server.ServeTLS(listener, "", "")
	context.AfterFunc(ctx, func() { server.Close() })
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (f *forwarder) handle(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod := podForwarder{f, types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}}
	portforward.ServePortForward(w, r, pod, pod.name.String(), "", options, forwardIdle, forwardCreate, portforward.SupportedProtocols)
}

type podForwarder struct {
	*forwarder
	name types.NamespacedName
}

// PortForward connects a stream to the real server that the pod's port stands
// for. It returns as soon as the server's side ends; what it returns reaches the
// client.
func (p podForwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	address, err := p.address(ctx, port)
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return fmt.Errorf("port %d of pod %s: %w", port, p.name.Name, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { conn.Close() })
	go p.cutWhenGone(ctx, conn)
	go func() {
		io.Copy(conn, stream)
		conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("pod %s is gone", p.name.Name)
	}
	return err
}

func (p podForwarder) address(ctx context.Context, port int32) (string, error) {
	pod, err := p.clients.typed.CoreV1().Pods(p.name.Namespace).Get(ctx, p.name.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	all, err := readRules(ctx, p.clients)
	if err != nil {
		return "", err
	}
	address := all.forPod(pod).Forward[strconv.Itoa(int(port))]
	if address == "" {
		return "", fmt.Errorf("nothing listens on port %d of pod %s", port, p.name.Name)
	}
	return address, nil
}

// cutWhenGone ends a connection into a pod that was deleted, as its processes'
// end does in a real one.
func (p podForwarder) cutWhenGone(ctx context.Context, conn net.Conn) {
	watch, err := p.clients.typed.CoreV1().Pods(p.name.Namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: p.name.Name}))
	if err != nil {
		return
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if event.Type == "DELETED" || (ok && pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0) {
			conn.Close()
			return
		}
	}
}
