// Package objectstore lists and deletes objects of one bucket. It knows S3 and
// nothing of woodpecker: which names may be deleted is its callers' business.
package objectstore

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Config says where the bucket is.
type Config struct {
	Endpoint, Bucket             string
	AccessKeyID, SecretAccessKey string
	Secure                       bool
	CACert                       string // path of a PEM file; empty: the system's roots
	Region                       string
	VirtualHost                  bool
}

// Store is one bucket.
type Store struct {
	client *minio.Client
	bucket string
}

// Open makes the client; the store is not contacted yet.
func Open(c Config) (*Store, error) {
	transport, err := minio.DefaultTransport(c.Secure)
	if err != nil {
		return nil, err
	}
	if err := trust(transport, c.CACert); err != nil {
		return nil, fmt.Errorf("object storage CA: %w", err)
	}
	lookup := minio.BucketLookupAuto
	if c.VirtualHost {
		lookup = minio.BucketLookupDNS
	}
	client, err := minio.New(c.Endpoint, &minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKeyID, c.SecretAccessKey, ""),
		Secure: c.Secure, Region: c.Region, BucketLookup: lookup, Transport: transport,
	})
	if err != nil {
		return nil, fmt.Errorf("object storage at %s: %w", c.Endpoint, err)
	}
	return &Store{client: client, bucket: c.Bucket}, nil
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
