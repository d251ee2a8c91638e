package objectstore

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"runbook/internal/fault"
	"runbook/internal/retry"
)

// The codes of this package's errors.
const (
	CodeNoBucket    = "objects.no-bucket"   // the bucket does not exist
	CodeDenied      = "objects.denied"      // the credentials may not do this
	CodeCredentials = "objects.credentials" // the credentials are wrong
	CodeUnreachable = "objects.unreachable" // no answer, or none that is S3
	CodeFailed      = "objects.failed"      // anything else that the store says
)

// explain turns what the client says into an error that a person can act on.
func (s *Store) explain(what, key string, err error) error {
	where := s.bucket
	if key != "" {
		where += "/" + key
	}
	// The client's URLs repeat the place in a form that is harder to read.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	s3, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case !ok && !retry.Transient(err):
		return fault.Fail(CodeFailed, "cannot %s", what).At(where).Because(err)
	case !ok:
		return fault.Fail(CodeUnreachable, "the object store at %s does not answer", s.endpoint).Because(err).
			Hint("check instance.objectStorage.endpoint and secure, and that the store is up")
	case s3.Code == "NoSuchBucket":
		return fault.Fail(CodeNoBucket, "bucket %s does not exist", s.bucket).At(s.endpoint).
			Hint("set instance.objectStorage.bucket to milvus's minio.bucketName, and endpoint to the store that holds it")
	case s3.Code == "InvalidAccessKeyId" || s3.Code == "SignatureDoesNotMatch":
		return fault.Fail(CodeCredentials, "the object store rejects the credentials: %s", s3.Code).At(s.endpoint).
			Hint("check instance.objectStorage.accessKeyID and secretAccessKey")
	case denied(err):
		return fault.Fail(CodeDenied, "not allowed to %s: %s", what, reason(s3)).At(where).
			Hint("grant it to the access key in instance.objectStorage, or use another one")
	default:
		return fault.Fail(CodeFailed, "cannot %s: %s", what, reason(s3)).At(where)
	}
}

// reason is the store's own code and message.
func reason(s3 minio.ErrorResponse) string {
	s3.Message = strings.TrimSuffix(s3.Message, ".")
	switch {
	case s3.Code == "":
		return http.StatusText(s3.StatusCode)
	case s3.Message == "" || s3.Message == s3.Code:
		return s3.Code
	default:
		return s3.Code + ": " + s3.Message
	}
}

func denied(err error) bool {
	s3, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (s3.Code == "AccessDenied" || s3.Code == "AllAccessDisabled" || s3.Code == "" && s3.StatusCode == http.StatusForbidden)
}

// notImplemented reports that a store does not know a request at all.
func notImplemented(err error) bool {
	s3, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (s3.Code == "NotImplemented" || s3.Code == "MethodNotAllowed" ||
		s3.StatusCode == http.StatusNotImplemented || s3.StatusCode == http.StatusMethodNotAllowed)
}
