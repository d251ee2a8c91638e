// Package control is the conversation between the lab process and the other
// commands: JSON over HTTP on a loopback port, with a token from lab.json. It
// carries requests; what they do is the Handler's business.
package control

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/proxy"
	"runbook/e2e/lab/internal/state"
)

const tokenHeader = "X-Runbook-Lab-Token"

// Session asks for a Milvus session.
type Session struct {
	Root    string        `json:"root"`
	Role    string        `json:"role"`
	ID      int64         `json:"id"`
	TTL     time.Duration `json:"ttl"`
	NoLease bool          `json:"noLease"`
	Abandon bool          `json:"abandon"` // of a stop: leave the key to its lease
}

// StandIn asks for a stand-in of Milvus's streaming node.
type StandIn struct {
	layout.Instance
	Stall []string `json:"stall"` // physical channels whose checkpoint never moves
}

// Components says what runs.
type Components struct {
	Etcd    []bool   `json:"etcd"`
	Objects bool     `json:"objects"`
	Nodes   []string `json:"nodes"`
}

// Handler does what is asked. Members and nodes are numbered from 1; member 0
// means all.
type Handler interface {
	Components() Components
	StopNode(n int, blackHole bool) error
	StartNode(ctx context.Context, n int) error
	StopEtcd(member int) error
	StartEtcd(ctx context.Context, member int) error
	StopObjects() error
	StartObjects(ctx context.Context) error
	StartSession(ctx context.Context, s Session) (string, error)
	StopSession(ctx context.Context, s Session) error
	StartStandIn(ctx context.Context, s StandIn) (health string, err error)
	StopStandIn(ctx context.Context, root string) error
	RPCCounts(reset bool) map[string]map[string]int64
	AddFault(n int, f proxy.Fault) error
	ClearFaults(n int) error
}

type request struct {
	N         int         `json:"n,omitempty"`
	BlackHole bool        `json:"blackHole,omitempty"`
	Reset     bool        `json:"reset,omitempty"`
	Session   Session     `json:"session,omitzero"`
	StandIn   StandIn     `json:"standIn,omitzero"`
	Fault     proxy.Fault `json:"fault,omitzero"`
}

type action func(ctx context.Context, r request) (any, error)

func actions(h Handler) map[string]action {
	none := func(err error) (any, error) { return struct{}{}, err }
	return map[string]action{
		"components":     func(context.Context, request) (any, error) { return h.Components(), nil },
		"stop-node":      func(_ context.Context, r request) (any, error) { return none(h.StopNode(r.N, r.BlackHole)) },
		"start-node":     func(ctx context.Context, r request) (any, error) { return none(h.StartNode(ctx, r.N)) },
		"stop-etcd":      func(_ context.Context, r request) (any, error) { return none(h.StopEtcd(r.N)) },
		"start-etcd":     func(ctx context.Context, r request) (any, error) { return none(h.StartEtcd(ctx, r.N)) },
		"stop-objects":   func(context.Context, request) (any, error) { return none(h.StopObjects()) },
		"start-objects":  func(ctx context.Context, _ request) (any, error) { return none(h.StartObjects(ctx)) },
		"session-start":  func(ctx context.Context, r request) (any, error) { return h.StartSession(ctx, r.Session) },
		"session-stop":   func(ctx context.Context, r request) (any, error) { return none(h.StopSession(ctx, r.Session)) },
		"stand-in-start": func(ctx context.Context, r request) (any, error) { return h.StartStandIn(ctx, r.StandIn) },
		"stand-in-stop":  func(ctx context.Context, r request) (any, error) { return none(h.StopStandIn(ctx, r.StandIn.Root)) },
		"rpc-counts":     func(_ context.Context, r request) (any, error) { return h.RPCCounts(r.Reset), nil },
		"fault-add":      func(_ context.Context, r request) (any, error) { return none(h.AddFault(r.N, r.Fault)) },
		"fault-clear":    func(_ context.Context, r request) (any, error) { return none(h.ClearFaults(r.N)) },
	}
}

// Server answers for the lab process.
type Server struct {
	http   *http.Server
	served chan struct{}
}

// Serve listens at address.
func Serve(address, token string, h Handler) (*Server, error) {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for name, act := range actions(h) {
		mux.HandleFunc("POST /"+name, handle(token, act))
	}
	s := &Server{http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, served: make(chan struct{})}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends with Close
	}()
	return s, nil
}

// Close stops listening.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

func handle(token string, act action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(token)) != 1 {
			http.Error(w, "wrong token", http.StatusForbidden)
			return
		}
		var req request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := act(r.Context(), req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // a caller that went away needs no answer
	}
}

// Client asks a lab process.
type Client struct {
	access state.ControlAccess
	http   *http.Client
}

// NewClient prepares a client.
func NewClient(access state.ControlAccess) *Client {
	return &Client{access: access, http: &http.Client{}}
}

func (c *Client) call(ctx context.Context, name string, req request, answer any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.access.Address+"/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set(tokenHeader, c.access.Token)
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("the lab process does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return errors.Join(errors.New(string(bytes.TrimSpace(text))), err)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// Components asks what runs.
func (c *Client) Components(ctx context.Context) (Components, error) {
	var out Components
	return out, c.call(ctx, "components", request{}, &out)
}

// StopNode stops node n.
func (c *Client) StopNode(ctx context.Context, n int, blackHole bool) error {
	return c.call(ctx, "stop-node", request{N: n, BlackHole: blackHole}, nil)
}

// StartNode starts node n and waits until it is a member again.
func (c *Client) StartNode(ctx context.Context, n int) error {
	return c.call(ctx, "start-node", request{N: n}, nil)
}

// StopEtcd stops a member, 0 for all.
func (c *Client) StopEtcd(ctx context.Context, member int) error {
	return c.call(ctx, "stop-etcd", request{N: member}, nil)
}

// StartEtcd starts a member, 0 for all.
func (c *Client) StartEtcd(ctx context.Context, member int) error {
	return c.call(ctx, "start-etcd", request{N: member}, nil)
}

// StopObjects stops the object store.
func (c *Client) StopObjects(ctx context.Context) error {
	return c.call(ctx, "stop-objects", request{}, nil)
}

// StartObjects starts the object store.
func (c *Client) StartObjects(ctx context.Context) error {
	return c.call(ctx, "start-objects", request{}, nil)
}

// StartSession registers a Milvus session and returns its key.
func (c *Client) StartSession(ctx context.Context, s Session) (string, error) {
	var key string
	return key, c.call(ctx, "session-start", request{Session: s}, &key)
}

// StopSession ends a session.
func (c *Client) StopSession(ctx context.Context, s Session) error {
	return c.call(ctx, "session-stop", request{Session: s}, nil)
}

// StartStandIn starts a stand-in and returns where its health is served.
func (c *Client) StartStandIn(ctx context.Context, s StandIn) (string, error) {
	var health string
	return health, c.call(ctx, "stand-in-start", request{StandIn: s}, &health)
}

// StopStandIn stops the stand-in of a root.
func (c *Client) StopStandIn(ctx context.Context, root string) error {
	return c.call(ctx, "stand-in-stop", request{StandIn: StandIn{Instance: layout.Instance{Root: root}}}, nil)
}

// RPCCounts returns calls by node and method, then forgets them if reset.
func (c *Client) RPCCounts(ctx context.Context, reset bool) (map[string]map[string]int64, error) {
	out := map[string]map[string]int64{}
	return out, c.call(ctx, "rpc-counts", request{Reset: reset}, &out)
}

// AddFault makes calls to node n fail.
func (c *Client) AddFault(ctx context.Context, n int, f proxy.Fault) error {
	return c.call(ctx, "fault-add", request{N: n, Fault: f}, nil)
}

// ClearFaults removes the faults of node n.
func (c *Client) ClearFaults(ctx context.Context, n int) error {
	return c.call(ctx, "fault-clear", request{N: n}, nil)
}
