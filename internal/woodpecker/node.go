package woodpecker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/zilliztech/woodpecker/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"runbook/internal/failpoint"
	"runbook/internal/retry"
)

// Dialer connects to host:port. A tunnel can be put in its place; names are
// handed to it unresolved.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// DefaultRetry bounds each call to a node. Every call may be repeated: marking a
// log that is marked changes nothing.
var DefaultRetry = retry.Policy{Attempts: 3, Attempt: 10 * time.Second}

// codeDeleting is the status of every call about a log while its deleting gate
// is up (werr.ErrLogBeingDeleted).
const codeDeleting = 2005

// Node is one log-store node. Its methods are safe for concurrent use.
type Node struct {
	address string
	policy  retry.Policy
	conn    *grpc.ClientConn
	calls   logStore
}

// logStore is the part of a node's service that this program may use. The call
// that deletes a whole instance is not part of it, nor are the reads that make
// a node create the directories of a log that is gone.
type logStore interface {
	MarkLogDeleted(context.Context, *proto.MarkLogDeletedRequest, ...grpc.CallOption) (*proto.MarkLogDeletedResponse, error)
	GetSegmentBlockCount(context.Context, *proto.GetSegmentBlockCountRequest, ...grpc.CallOption) (*proto.GetSegmentBlockCountResponse, error)
	SelectNodes(context.Context, *proto.SelectNodesRequest, ...grpc.CallOption) (*proto.SelectNodesResponse, error)
}

// NewNode describes a node; it is connected to when first called.
func NewNode(address string, dial Dialer) (*Node, error) {
	if !IsAddress(address) {
		return nil, fmt.Errorf("%q is no address of a log-store node", address)
	}
	reconnect := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: DefaultRetry.Attempt,
	}
	// "passthrough" leaves the name to the dialer: behind a tunnel only that can resolve it.
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(dial), grpc.WithConnectParams(reconnect),
		grpc.WithTransportCredentials(insecure.NewCredentials())) // nodes serve plain text
	if err != nil {
		return nil, err
	}
	return &Node{address: address, policy: DefaultRetry, conn: conn, calls: proto.NewLogStoreClient(conn)}, nil
}

// Address is host:port.
func (n *Node) Address() string { return n.address }

// With is the same node, called by another policy.
func (n *Node) With(policy retry.Policy) *Node {
	other := *n
	other.policy = policy
	return &other
}

// Close ends the connection.
func (n *Node) Close() error { return n.conn.Close() }

// Mark tells the node that a log is deleted: it stops serving it at once and
// removes its files after a grace period (5 s unless configured).
func (n *Node) Mark(ctx context.Context, log LogRef) error {
	if err := log.valid(); err != nil {
		return err
	}
	request := &proto.MarkLogDeletedRequest{BucketName: log.space.bucket, RootPath: log.space.root, LogId: log.id}
	err := n.call(ctx, func(ctx context.Context) (*proto.Status, error) {
		reply, err := n.calls.MarkLogDeleted(ctx, request)
		return reply.GetStatus(), err
	})
	if err == nil {
		failpoint.Hit("woodpecker/log-marked")
	}
	return err
}

// Gate is what a node says about a log that was marked.
type Gate struct {
	Up     bool  // the log is still being deleted
	Blocks int64 // blocks that a writer of segment 0 has made since the gate went down
}

// Gate asks whether a marked log has been reclaimed: its gate goes down in the
// moment when its files are gone. The gate of a log that was never marked is
// down too, so this says something only after Mark. It leaves nothing on disk.
func (n *Node) Gate(ctx context.Context, log LogRef) (Gate, error) {
	if err := log.valid(); err != nil {
		return Gate{}, err
	}
	request := &proto.GetSegmentBlockCountRequest{BucketName: log.space.bucket, RootPath: log.space.root, LogId: log.id}
	var gate Gate
	err := n.call(ctx, func(ctx context.Context) (*proto.Status, error) {
		reply, err := n.calls.GetSegmentBlockCount(ctx, request)
		if gate = (Gate{Blocks: reply.GetBlockCount()}); reply.GetStatus().GetCode() == codeDeleting {
			gate.Up = true
			return nil, err
		}
		return reply.GetStatus(), err
	})
	return gate, err
}

// Member is a node as the nodes' own membership knows it.
type Member struct {
	Address string // host:port that it advertises
	ID      string
}

// Members asks for every live node of the cluster, this one included.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	// One empty filter selects all; no filter at all is an error.
	request := &proto.SelectNodesRequest{Strategy: proto.StrategyType_RANDOM, Filters: []*proto.NodeFilter{{}}}
	var members []Member
	err := n.call(ctx, func(ctx context.Context) (*proto.Status, error) {
		reply, err := n.calls.SelectNodes(ctx, request)
		members = nil
		for _, node := range reply.GetNodes() {
			if IsAddress(node.GetEndpoint()) {
				members = append(members, Member{Address: node.GetEndpoint(), ID: node.GetNodeId()})
			}
		}
		return reply.GetStatus(), err
	})
	return members, err
}

// Ping asks whether the node answers at all. It reads only.
func (n *Node) Ping(ctx context.Context) error {
	_, err := n.Members(ctx)
	if _, rejected := errors.AsType[*Rejection](err); rejected {
		return nil // a node that has not joined its cluster yet answers too
	}
	return err
}

// call makes one call by the node's policy. A status other than success is a
// *Rejection and is not tried again.
func (n *Node) call(ctx context.Context, do func(context.Context) (*proto.Status, error)) error {
	err := n.policy.Do(ctx, func(ctx context.Context) error {
		s, err := do(ctx)
		if err == nil && s.GetCode() != 0 {
			err = &Rejection{Code: s.GetCode(), Reason: s.GetReason()}
		}
		return err
	})
	return plain(err)
}

// Rejection is an answer of a node other than success.
type Rejection struct {
	Code   int32 // of woodpecker's werr, 2000 to 2999 for nodes
	Reason string
}

func (r *Rejection) Error() string { return fmt.Sprintf("rejected with code %d: %s", r.Code, r.Reason) }

// Unreachable reports whether a call failed because the node did not answer.
func Unreachable(err error) bool {
	_, ok := errors.AsType[*unreachable](err)
	return ok
}

// unreachable words a transport error for people and keeps it for programs.
type unreachable struct {
	text string
	err  error
}

func (u *unreachable) Error() string { return u.text }
func (u *unreachable) Unwrap() error { return u.err }

// plain takes the layers of gRPC off an error's text.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if timeout, ok := errors.AsType[*retry.Timeout](err); ok {
		return &unreachable{timeout.Error(), err}
	}
	grpcError, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	switch {
	case !ok:
		return err
	case grpcError.GRPCStatus().Code() == codes.Unimplemented:
		return fmt.Errorf("the node does not know this call: it is no woodpecker log store, or one before v0.1.37: %w", err)
	case !retry.Transient(err):
		return err
	}
	text := grpcError.GRPCStatus().Message()
	if strings.Contains(text, "error reading server preface") {
		text = "it accepts connections and says nothing"
	} else if _, cause, ok := strings.Cut(text, "Error while dialing: "); ok {
		// connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"
		text = strings.TrimSuffix(cause, `"`)
	}
	return &unreachable{text, err}
}
