// Package access opens clients of a lab's servers from what lab.json says. The
// clients are the plain ones of etcd and S3, never woodpecker's: what looks at
// a lab must not depend on the code that filled it.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"runbook/e2e/lab/internal/servers"
	"runbook/e2e/lab/internal/state"
)

// How long to wait for an etcd that is down.
const (
	dialTimeout   = 3 * time.Second
	answerTimeout = 3 * time.Second
)

// Etcd opens a client with all rights.
func Etcd(ctx context.Context, lab *state.Lab) (*clientv3.Client, error) {
	return EtcdAs(ctx, lab, lab.Etcd.Root)
}

// EtcdAs opens a client of the given user; nil where etcd asks for none.
func EtcdAs(ctx context.Context, lab *state.Lab, who *state.Credential) (*clientv3.Client, error) {
	cfg := clientv3.Config{Endpoints: lab.Etcd.Endpoints, Context: ctx, DialTimeout: dialTimeout, Logger: zap.NewNop()}
	if who != nil {
		cfg.Username, cfg.Password = who.Name, who.Secret
	}
	if lab.Etcd.CAFile != "" {
		var err error
		if cfg.TLS, err = servers.ClientTLS(lab.Etcd.CAFile); err != nil {
			return nil, err
		}
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd at %v: %w", lab.Etcd.Endpoints, err)
	}
	// The client itself would retry for as long as its caller lets it.
	probe, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := client.Get(probe, "runbook-lab-probe", clientv3.WithKeysOnly()); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %v does not answer: %w", lab.Etcd.Endpoints, err), client.Close())
	}
	return client, nil
}

// Objects opens a client that no policy binds.
func Objects(lab *state.Lab) (*minio.Client, error) { return ObjectsAs(lab, lab.Objects.Admin) }

// ObjectsAs opens a client with the given credentials.
func ObjectsAs(lab *state.Lab, who state.Credential) (*minio.Client, error) {
	client, err := minio.New(lab.Objects.Endpoint, &minio.Options{
		Creds: credentials.NewStaticV4(who.Name, who.Secret, ""), Region: "us-east-1", MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("object store at %s: %w", lab.Objects.Endpoint, err)
	}
	return client, nil
}
