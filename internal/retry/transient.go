package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Transient reports whether the same request may succeed later: the way to the
// server broke, the server had no leader or no time, or it asked to slow down.
// A refusal (no permission, no such bucket, a node's status code) is not.
func Transient(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case isTimeout(err), Throttled(err):
		return true
	}
	if etcd, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return etcd.Code() == codes.Unavailable // no leader, leader changed, request timed out
	}
	if s3, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return s3.StatusCode >= http.StatusInternalServerError && s3.StatusCode != http.StatusNotImplemented ||
			slices.Contains(s3Transient, s3.Code)
	}
	if s, ok := status.FromError(err); ok {
		return s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded
	}
	return transport(err)
}

// Throttled reports whether the server asked to slow down.
func Throttled(err error) bool {
	if s3, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return s3.StatusCode == http.StatusTooManyRequests || slices.Contains(s3Throttled, s3.Code)
	}
	return errors.Is(err, rpctypes.ErrTooManyRequests)
}

// S3 error codes. An error of one key in a batch has a code and no HTTP status.
var (
	s3Throttled = []string{"SlowDown", "SlowDownRead", "SlowDownWrite", "TooManyRequests", "Throttling", "ThrottlingException", "RequestLimitExceeded"}
	s3Transient = []string{"InternalError", "ServiceUnavailable", "RequestTimeout", "XMinioServerNotInitialized"}
)

// transport reports whether err comes from a broken or refused connection. A
// certificate that is not trusted will not be trusted the next time either.
func transport(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, ok := errors.AsType[net.Error](err) // includes *net.OpError and *url.Error
	return ok
}
