package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a pod's container that really runs, as a child of this program. The
// nil process is one that was never started.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startProcess(argv []string) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		cmd.Wait() // how it ended does not matter: a container that ends is restarted
	}()
	return p, nil
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) terminate() { p.signal(syscall.SIGTERM) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	if p != nil {
		<-p.done
	}
}

func (p *process) signal(s syscall.Signal) {
	if p.running() {
		syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// probe asks the process whether it is ready, as a kubelet's probe does.
func (p *process) probe(url string) bool {
	if !p.running() {
		return false
	}
	client := http.Client{Timeout: 50 * time.Millisecond}
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
