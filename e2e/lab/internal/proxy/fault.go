package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zilliztech/woodpecker/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Mode is how a call fails.
type Mode string

// Reject answers properly, with a woodpecker status that says no; Stall never
// answers; Unavailable is the transport error of a node that went away.
const (
	Reject      Mode = "reject"
	Stall       Mode = "stall"
	Unavailable Mode = "unavailable"
)

// AnyMethod makes a fault meet every call.
const AnyMethod = "*"

const spent = -1

// Fault makes calls of Method fail; Times 0 means until cleared.
type Fault struct {
	Method string `json:"method"`
	Mode   Mode   `json:"mode"`
	Times  int    `json:"times"`
	Skip   int    `json:"skip"` // calls to let through first
}

// Check says what is wrong with the fault, if anything.
func (f *Fault) Check() error {
	switch f.Mode {
	case Reject, Stall, Unavailable:
	default:
		return fmt.Errorf("fault mode %q: want %s, %s or %s", f.Mode, Reject, Stall, Unavailable)
	}
	if f.Times < 0 || f.Skip < 0 {
		return errors.New("fault times and skip must not be negative")
	}
	return nil
}

// rejectCode is woodpecker's internal error, here marked as not retriable: a final no.
const rejectCode = 8000

func (f *Fault) apply(method string, in grpc.ServerStream) error {
	switch f.Mode {
	case Unavailable:
		return status.Error(codes.Unavailable, "lab fault: node unavailable")
	case Stall:
		ctx, cancel := context.WithTimeout(in.Context(), stallLimit)
		defer cancel()
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	default:
		return reject(method, in)
	}
}

func reject(method string, in grpc.ServerStream) error {
	answer, err := rejection(method)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	var request frame
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	return in.SendMsg(&frame{data: answer})
}

// rejection builds the method's response with nothing but a refusing status:
// every woodpecker response has one.
func rejection(method string) ([]byte, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	desc, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	rpc, ok := desc.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, errors.New("not a method: " + string(name))
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(rpc.Output().FullName())
	if err != nil {
		return nil, err
	}
	msg := kind.New()
	field := rpc.Output().Fields().ByName("status")
	if field == nil {
		return nil, errors.New("no status in the response of " + string(name))
	}
	no := &proto.Status{Code: rejectCode, Reason: "lab fault: rejected", Detail: "injected by runbook-lab at " + time.Now().UTC().Format(time.RFC3339)}
	msg.Set(field, protoreflect.ValueOfMessage(no.ProtoReflect()))
	return protobuf.Marshal(msg.Interface())
}

// frame is one message as bytes.
type frame struct{ data []byte }

// rawCodec carries frames as they are, under the name of the codec that both
// ends really use.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, errors.New("proxy: not a frame")
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return errors.New("proxy: not a frame")
	}
	f.data = data.Materialize()
	return nil
}
