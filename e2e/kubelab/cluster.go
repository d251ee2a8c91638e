package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const startTimeout = 60 * time.Second

// The files of a cluster's folder that other commands and tests use.
const (
	kubeconfigFile = "kubeconfig"
	readyFile      = "kubelab.ready"
	pidFile        = "kubelab.pid"
	logFile        = "kubelab.log"
)

// controlPlane is the three real programs, running.
type controlPlane struct {
	dir       string
	host      string // of the API server
	authority *authority
	exited    chan error // the first program that ended
	processes []*exec.Cmd
}

// startControlPlane starts etcd, API server and controller manager as children
// that die with this process. It must be called from the main goroutine, which
// stays on its thread: a child is killed when the thread that made it ends.
func startControlPlane(ctx context.Context, dir string) (*controlPlane, error) {
	p := &controlPlane{dir: dir, exited: make(chan error, len(programs))}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	etcdURL, peerURL := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	p.host = "https://127.0.0.1:" + ports[2]
	if err := p.writeCredentials(); err != nil {
		return nil, err
	}
	if err := p.start(etcdProgram,
		"--data-dir="+p.file("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL,
	); err != nil {
		return nil, err
	}
	if err := p.start(apiserverProgram,
		"--etcd-servers="+etcdURL, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+ports[2],
		"--endpoint-reconciler-type=none", "--tls-cert-file="+p.file("server.crt"), "--tls-private-key-file="+p.file("server.key"),
		"--client-ca-file="+p.file("ca.crt"), "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+p.file("server.key"), "--service-account-signing-key-file="+p.file("server.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
		// Nothing here uses a service account's token, and pods would wait for one.
		"--disable-admission-plugins=ServiceAccount", "--v=0",
	); err != nil {
		return nil, err
	}
	clients, err := p.clients()
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx, "the API server", func(ctx context.Context) error {
		return clients.typed.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return nil, err
	}
	return p, p.start(controllerProgram,
		"--kubeconfig="+p.file(kubeconfigFile), "--bind-address=127.0.0.1", "--secure-port=0", "--leader-elect=false",
		"--root-ca-file="+p.file("ca.crt"), "--v=0",
	)
}

func (p *controlPlane) file(name string) string { return filepath.Join(p.dir, name) }

func (p *controlPlane) writeCredentials() (err error) {
	if p.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := p.authority.save(p.dir); err != nil {
		return err
	}
	until := time.Now().Add(certificateLife)
	cert, key, err := p.authority.issue("kube-apiserver", nil, until)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file("server.crt"), cert, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(p.file("server.key"), key, 0o600); err != nil {
		return err
	}
	return writeKubeconfig(p.authority, p.host, "admin", []string{"system:masters"}, until, p.file(kubeconfigFile))
}

// writeKubeconfig makes credentials for a user.
func writeKubeconfig(a *authority, host, user string, groups []string, until time.Time, path string) error {
	cert, key, err := a.issue(user, groups, until)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters["kubelab"] = &api.Cluster{Server: host, CertificateAuthorityData: a.pem}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["kubelab"] = &api.Context{Cluster: "kubelab", AuthInfo: user, Namespace: defaultNamespace}
	config.CurrentContext = "kubelab"
	return clientcmd.WriteToFile(*config, path)
}

func (p *controlPlane) start(name string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(p.file(name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, append([]string{name}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.processes = append(p.processes, cmd)
	go func() { p.exited <- fmt.Errorf("%s ended: %w", name, cmd.Wait()) }()
	return os.WriteFile(p.file(name+".pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// stop ends the programs, the last started first.
func (p *controlPlane) stop() {
	for i := len(p.processes) - 1; i >= 0; i-- {
		process := p.processes[i].Process
		process.Signal(syscall.SIGCONT) // it may have been paused
		process.Kill()                  // its data is thrown away
	}
	for range p.processes {
		<-p.exited
	}
}

// wait asks until something answers or a program ends.
func (p *controlPlane) wait(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s did not start within %s", what, startTimeout))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ask(ctx) == nil {
			return nil
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (p *controlPlane) clients() (*clients, error) { return newClients(p.dir) }

// clients talk to the cluster of a folder.
type clients struct {
	config  *rest.Config
	typed   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
}

func newClients(dir string) (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, kubeconfigFile))
	if err != nil {
		return nil, fmt.Errorf("no cluster in %s: %w", dir, err)
	}
	config.QPS, config.Burst = 500, 1000
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{config: config, typed: typed, dynamic: untyped}, nil
}

// freePorts finds ports of 127.0.0.1 that nobody listens on.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		_, port, _ := strings.Cut(listener.Addr().String(), ":")
		ports = append(ports, port)
	}
	return ports, nil
}
