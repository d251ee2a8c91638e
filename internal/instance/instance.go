// Package instance is one Milvus as seen from outside: its settings and the
// clients to reach it, opened when first used. It knows how to get somewhere,
// not what to do there.
package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"runbook/internal/fault"
	"runbook/internal/objectstore"
	"runbook/internal/secret"
)

const (
	dialTimeout = 5 * time.Second
	keepAlive   = 10 * time.Second
)

// Instance holds the clients of one Milvus. Its methods are safe for concurrent use.
type Instance struct {
	Settings Settings
	// OnSecret is told each secret when it is read, before it is used: output is
	// masked from then on. Set it before the first use; nil: nobody is told.
	OnSecret func(value string)

	secrets    secret.Resolver
	kubernetes kubernetes
	resolved   resolution

	mu      sync.Mutex
	etcd    *clientv3.Client
	objects *objectstore.Store

	logStore nodeClients
}

// New describes an instance; nothing is dialled yet. secrets may be nil.
func New(settings Settings, secrets secret.Resolver) *Instance {
	return &Instance{Settings: settings, secrets: secrets}
}

// Etcd returns the client, made at the first call. No request is sent here: give
// each a deadline.
func (i *Instance) Etcd(ctx context.Context) (*clientv3.Client, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.etcd != nil {
		return i.etcd, nil
	}
	s := i.Settings.Etcd
	password, err := i.secretOr(ctx, s.Password, "etcd.auth.password")
	if err != nil {
		return nil, fmt.Errorf("etcd password: %w", err)
	}
	tlsConfig, err := s.TLS.config()
	if err != nil {
		return nil, fault.Refuse("etcd.tls", "a file of instance.etcd.tls cannot be used").Because(err).
			Hint("set caCert, cert and key to readable PEM files")
	}
	// A large read arrives in pages; one page of segment metadata can pass the 2 MiB default.
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20))}
	tunnel, err := i.tunnel()
	if err != nil {
		return nil, err
	}
	dial := (&net.Dialer{}).DialContext
	if tunnel != nil {
		dial = tunnel
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return tunnel(ctx, "tcp", address)
		}))
	}
	if err := handshake(ctx, s.Endpoints, tlsConfig, dial); err != nil {
		return nil, err
	}
	i.etcd, err = clientv3.New(clientv3.Config{
		Endpoints: s.Endpoints, Username: s.Username, Password: password, TLS: tlsConfig,
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive,
		DialOptions: options, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: 64 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("etcd at %v: %w", s.Endpoints, err)
	}
	return i.etcd, nil
}

// Objects returns the object store client, made at the first call.
func (i *Instance) Objects(ctx context.Context) (*objectstore.Store, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.objects != nil {
		return i.objects, nil
	}
	s := i.Settings.ObjectStorage
	access, err := i.secretOr(ctx, s.AccessKeyID, "minio.accessKeyID")
	if err != nil {
		return nil, fmt.Errorf("object storage access key: %w", err)
	}
	secretKey, err := i.secretOr(ctx, s.SecretAccessKey, "minio.secretAccessKey")
	if err != nil {
		return nil, fmt.Errorf("object storage secret key: %w", err)
	}
	tunnel, err := i.tunnel()
	if err != nil {
		return nil, err
	}
	i.objects, err = objectstore.Open(objectstore.Config{
		Endpoint: s.Endpoint, Bucket: s.Bucket, AccessKeyID: access, SecretAccessKey: secretKey,
		Secure: s.Secure, CACert: s.CACert, Region: s.Region, VirtualHost: s.VirtualHost,
		Dial: tunnel,
	})
	return i.objects, err
}

// Secret reads a secret and tells OnSecret; read secrets through it and no other way.
func (i *Instance) Secret(ctx context.Context, v secret.Value) (string, error) {
	resolver, err := i.resolver()
	if err != nil {
		return "", err
	}
	value, err := v.Resolve(ctx, resolver)
	if err != nil {
		return "", fault.Refuse("instance.secret", "secret cannot be read").Because(err).
			Hint("make it readable for this command: the plan takes it from %s", v)
	}
	i.tellSecret(value)
	return value, nil
}

// tellSecret makes sure that a secret is masked before anything can print it.
func (i *Instance) tellSecret(value string) {
	if i.OnSecret != nil && value != "" {
		i.OnSecret(value)
	}
}

// Close closes what was opened.
func (i *Instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	if i.etcd != nil {
		errs = append(errs, i.etcd.Close())
		i.etcd = nil
	}
	return errors.Join(append(errs, i.logStore.close())...)
}

// joinPath joins as Milvus does, which cleans; keys never start with a slash.
func joinPath(elem ...string) string { return path.Join(elem...) }
