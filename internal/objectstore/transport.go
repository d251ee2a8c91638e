package objectstore

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"

	"runbook/internal/retry"
)

// largestAnswer bounds what is kept of one answer: a page of 1000 names, or the
// results of 1000 deletions. Objects themselves are never read.
const largestAnswer = 16 << 20

// patient gives every request its attempts and deadlines, by the one retry
// policy of the program. All requests of this package may be sent again: they
// list, or they delete what is to be gone. An answer is read in whole here, so
// that a connection that breaks in the middle of one is a failed attempt.
type patient struct {
	next   http.RoundTripper
	policy retry.Policy
}

// RoundTrip implements http.RoundTripper.
func (t *patient) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := drain(request.Body)
	if err != nil {
		return nil, err
	}
	var answer *http.Response
	err = t.policy.Do(request.Context(), func(ctx context.Context) error {
		answer, err = t.once(request.Clone(ctx), body)
		if err != nil {
			return err
		}
		return status(answer)
	})
	if answer != nil {
		return answer, nil // with an error status, the client reads the error out of it
	}
	return nil, err
}

func (t *patient) once(request *http.Request, body []byte) (*http.Response, error) {
	if body != nil {
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	content, err := drain(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}

// status is the error that an answer stands for, in the form that retry knows.
func status(answer *http.Response) error {
	if answer.StatusCode < http.StatusBadRequest {
		return nil
	}
	content, err := drain(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	failure := minio.ErrorResponse{}
	_ = xml.Unmarshal(content, &failure) // a proxy's answer is no XML; its status is enough
	failure.StatusCode = answer.StatusCode
	return failure
}

// drain reads body to its end and closes it; nil stays nil.
func drain(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, largestAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(content) > largestAnswer {
		return nil, fmt.Errorf("an answer of more than %d MiB", largestAnswer>>20)
	}
	return content, nil
}
