// Package proxy is a transparent gRPC proxy in front of one log-store node. It
// copies frames without decoding them, counts calls by method and can make
// chosen calls fail. What a call means is no concern of it.
package proxy

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Proxy forwards to one target. Counts and faults survive Stop and Start.
type Proxy struct {
	target string

	mu     sync.Mutex
	counts map[string]int64
	faults []Fault

	server *grpc.Server
	conn   *grpc.ClientConn
	served chan struct{}
}

// New prepares a proxy to target.
func New(target string) *Proxy {
	return &Proxy{target: target, counts: map[string]int64{}}
}

// Start listens at address and forwards from there.
func (p *Proxy) Start(address string) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+p.target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}),
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	p.conn = conn
	p.server = grpc.NewServer(grpc.UnknownServiceHandler(p.handle), grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))
	p.served = make(chan struct{})
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // ends with Stop
	}()
	return nil
}

// Stop closes the listener and every connection, as a dying node would.
func (p *Proxy) Stop() {
	if p.server == nil {
		return
	}
	p.server.Stop()
	<-p.served
	_ = p.conn.Close()
	p.server, p.conn = nil, nil
}

// Counts returns how often each method was called.
func (p *Proxy) Counts() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int64, len(p.counts))
	for method, n := range p.counts {
		out[method] = n
	}
	return out
}

// ResetCounts forgets the counts.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.counts)
}

// handle forwards one call of any kind; a unary call is a stream of one frame.
func (p *Proxy) handle(_ any, in grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(in)
	if !ok {
		return status.Error(codes.Internal, "proxy: call without a method")
	}
	if fault := p.admit(path.Base(method)); fault != nil {
		return fault.apply(method, in)
	}
	ctx, cancel := context.WithCancel(outgoing(in.Context()))
	defer cancel()
	desc := &grpc.StreamDesc{StreamName: path.Base(method), ServerStreams: true, ClientStreams: true}
	out, err := p.conn.NewStream(ctx, desc, method)
	if err != nil {
		return err
	}
	requests := make(chan error, 1)
	go func() { requests <- copyRequests(in, out) }()
	responses := make(chan error, 1)
	go func() { responses <- copyResponses(out, in) }()
	for {
		select {
		case err := <-requests:
			if err != nil {
				return status.FromContextError(err).Err()
			}
			requests = nil // half closed: the answer is still to come
		case err := <-responses:
			in.SetTrailer(out.Trailer())
			return err
		}
	}
}

func outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	return metadata.NewOutgoingContext(ctx, md.Copy())
}

func copyRequests(in grpc.ServerStream, out grpc.ClientStream) error {
	for {
		var f frame
		if err := in.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return out.CloseSend()
			}
			return err
		}
		if err := out.SendMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil // the node ended the call; its status comes with the answer
			}
			return err
		}
	}
}

func copyResponses(out grpc.ClientStream, in grpc.ServerStream) error {
	header, err := out.Header()
	if err != nil {
		return err
	}
	if err := in.SendHeader(header); err != nil {
		return err
	}
	for {
		var f frame
		if err := out.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := in.SendMsg(&f); err != nil {
			return err
		}
	}
}

// admit counts the call and returns the fault it meets, if any.
func (p *Proxy) admit(method string) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[method]++
	for i := range p.faults {
		f := &p.faults[i]
		if f.Method != method && f.Method != AnyMethod {
			continue
		}
		if f.Times == spent {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		hit := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = spent
			}
		}
		return &hit
	}
	return nil
}

// AddFault makes calls fail from now on.
func (p *Proxy) AddFault(f Fault) error {
	if err := f.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return nil
}

// ClearFaults lets every call through again. Calls that stall end when their
// caller gives up.
func (p *Proxy) ClearFaults() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// stallLimit ends a stalled call of a caller without a deadline.
const stallLimit = 10 * time.Minute
