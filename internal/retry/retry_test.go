package retry_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"runbook/internal/retry"
)

func TestWhatIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing went wrong", nil, false},
		{"a connection that was refused", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{"an answer that broke off", io.ErrUnexpectedEOF, true},
		{"a certificate that is not trusted", &net.OpError{Op: "dial", Err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, false},
		{"somebody gave up", context.Canceled, false},
		{"etcd without a leader", rpctypes.ErrNoLeader, true},
		{"etcd whose leader changed", rpctypes.ErrLeaderChanged, true},
		{"etcd that is full", rpctypes.ErrNoSpace, false},
		{"an etcd user without the right", rpctypes.ErrPermissionDenied, false},
		{"a node that is not there", status.Error(codes.Unavailable, "connection refused"), true},
		{"a node that rejects", status.Error(codes.InvalidArgument, "bad log id"), false},
		{"an object store that asks to slow down", minio.ErrorResponse{Code: "SlowDown", StatusCode: http.StatusServiceUnavailable}, true},
		{"one key of a batch that may be tried later", minio.ErrorResponse{Code: "SlowDown"}, true},
		{"an object store that stumbles", minio.ErrorResponse{Code: "InternalError", StatusCode: http.StatusInternalServerError}, true},
		{"an object store that does not know the request", minio.ErrorResponse{Code: "NotImplemented", StatusCode: http.StatusNotImplemented}, false},
		{"an object that may not be deleted", minio.ErrorResponse{Code: "AccessDenied", StatusCode: http.StatusForbidden}, false},
		{"a bucket that is not there", minio.ErrorResponse{Code: "NoSuchBucket", StatusCode: http.StatusNotFound}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := retry.Transient(c.err); got != c.want {
				t.Errorf("tried again: %v, want %v", got, c.want)
			}
		})
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	calls := 0
	err := retry.Policy{Attempts: 3}.Do(t.Context(), func(context.Context) error {
		calls++
		return io.ErrUnexpectedEOF
	})
	if calls != 3 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d calls, %v; want 3 that end with the cause", calls, err)
	}
}

func TestARefusalIsFinal(t *testing.T) {
	calls := 0
	err := retry.Policy{Attempts: 3}.Do(t.Context(), func(context.Context) error {
		calls++
		return rpctypes.ErrPermissionDenied
	})
	if calls != 1 || !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("%d calls, %v; want one", calls, err)
	}
}

func TestAnAttemptThatHangsIsGivenUpAndTriedAgain(t *testing.T) {
	calls := 0
	err := retry.Policy{Attempts: 2, Attempt: 20 * time.Millisecond}.Do(t.Context(), func(ctx context.Context) error {
		if calls++; calls == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if calls != 2 || err != nil {
		t.Errorf("%d calls, %v; want a second that succeeds", calls, err)
	}
}

func TestACallerThatGivesUpEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	err := retry.Policy{Attempts: 1000}.Do(ctx, func(context.Context) error {
		cancel(why)
		return io.ErrUnexpectedEOF
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v, want the reason for giving up", err)
	}
}
