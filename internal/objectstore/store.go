// Package objectstore lists and deletes objects of one bucket. It knows S3 and
// nothing of woodpecker: which names may be deleted is its callers' business.
package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"runbook/internal/fault"
	"runbook/internal/retry"
)

// Config says where the bucket is.
type Config struct {
	Endpoint, Bucket             string
	AccessKeyID, SecretAccessKey string
	Secure                       bool
	CACert                       string // path of a PEM file; empty: the system's roots
	Region                       string
	VirtualHost                  bool
	// Dial connects to host:port in place of TCP: a tunnel into the network that
	// the endpoint's name belongs to, past any proxy. nil: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DefaultRetry bounds each request unless With says otherwise: an answer is a page
// of names or the results of one batch, which takes a slow store seconds and not minutes.
var DefaultRetry = retry.Policy{Attempts: 8, Attempt: 30 * time.Second}

// Store is one bucket. Its methods are safe for concurrent use.
type Store struct {
	client           *minio.Client
	options          minio.Options     // of client
	base             http.RoundTripper // what options.Transport sends requests with
	endpoint, bucket string
	singleDeletes    atomic.Bool // the store has no multi-object delete
}

// Open makes the client; the store is not contacted yet.
func Open(c Config) (*Store, error) {
	base, err := minio.DefaultTransport(c.Secure)
	if err != nil {
		return nil, err
	}
	if err := trust(base, c.CACert); err != nil {
		return nil, fault.Refuse("objects.tls", "the CA certificate of the object store cannot be used").Because(err).
			Hint("set instance.objectStorage.caCert to a readable PEM file")
	}
	if c.Dial != nil {
		base.DialContext, base.Proxy = c.Dial, nil
	}
	lookup := minio.BucketLookupAuto
	if c.VirtualHost {
		lookup = minio.BucketLookupDNS
	}
	store := &Store{endpoint: c.Endpoint, bucket: c.Bucket, base: base, options: minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKeyID, c.SecretAccessKey, ""),
		Secure: c.Secure, Region: c.Region, BucketLookup: lookup,
		MaxRetries: 1, // the transport does it
	}}
	if store, err = store.With(DefaultRetry); err != nil {
		return nil, err
	}
	store.singleDeletes.Store(s3utils.IsGoogleEndpoint(*store.client.EndpointURL()))
	return store, nil
}

// With is the same bucket with other bounds on each request.
func (s *Store) With(policy retry.Policy) (*Store, error) {
	other := &Store{endpoint: s.endpoint, bucket: s.bucket, base: s.base, options: s.options}
	other.options.Transport = &patient{next: s.base, policy: policy}
	var err error
	if other.client, err = minio.New(s.endpoint, &other.options); err != nil {
		return nil, fmt.Errorf("object storage at %s: %w", s.endpoint, err)
	}
	other.singleDeletes.Store(s.singleDeletes.Load())
	return other, nil
}

// Bucket is the bucket's name.
func (s *Store) Bucket() string { return s.bucket }

// Endpoint is host:port of the store.
func (s *Store) Endpoint() string { return s.endpoint }

// InBucket is the same store's other bucket.
func (s *Store) InBucket(bucket string) *Store {
	other := &Store{client: s.client, options: s.options, base: s.base, endpoint: s.endpoint, bucket: bucket}
	other.singleDeletes.Store(s.singleDeletes.Load())
	return other
}

func trust(transport *http.Transport, caCert string) error {
	if caCert == "" {
		return nil
	}
	pem, err := os.ReadFile(caCert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no PEM certificate", caCert)
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.RootCAs = roots
	return nil
}
