// Package seed fills a lab with the data of a stopped Milvus instance: its WAL
// through the real woodpecker client, and the residue and damage that the field
// has seen. What it wrote is judged elsewhere (survey, snapshot, verify).
package seed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/zilliztech/woodpecker/common/config"
	"github.com/zilliztech/woodpecker/common/logger"
	"github.com/zilliztech/woodpecker/common/objectstorage"
	"github.com/zilliztech/woodpecker/woodpecker"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/state"
)

// Storage types of woodpecker.
const (
	StorageService = "service"
	StorageMinio   = "minio"
	StorageLocal   = "local"
)

// Target is the instance to write to and the way woodpecker stores its data.
type Target struct {
	layout.Instance
	StorageType string
	LocalPath   string // disk of storage type local
}

// Seeder writes to one target of one lab.
type Seeder struct {
	lab     *state.Lab
	target  Target
	etcd    *clientv3.Client
	objects *minio.Client
	say     func(format string, args ...any)
}

// New opens the lab's etcd and object store; say receives progress.
func New(ctx context.Context, lab *state.Lab, target Target, say func(string, ...any)) (*Seeder, error) {
	switch target.StorageType {
	case StorageService, StorageMinio, StorageLocal:
	default:
		return nil, fmt.Errorf("storage type %q: want %s, %s or %s", target.StorageType, StorageService, StorageMinio, StorageLocal)
	}
	if target.LocalPath == "" {
		target.LocalPath = lab.LocalDir()
	}
	// The client logs to standard output through a logger of its own; what goes
	// wrong comes back as an error.
	logger.ReplaceGlobals(zap.NewNop())
	objects, err := access.Objects(lab)
	if err != nil {
		return nil, err
	}
	etcd, err := access.Etcd(ctx, lab)
	if err != nil {
		return nil, err
	}
	return &Seeder{lab: lab, target: target, etcd: etcd, objects: objects, say: say}, nil
}

// Close closes the clients.
func (s *Seeder) Close() error { return s.etcd.Close() }

// Client is a woodpecker client and what has to be closed with it.
type Client struct {
	woodpecker.Client
	embedded bool
}

// Close closes the client; an embedded one stops its log store too, of which a
// process has only one.
func (c *Client) Close(ctx context.Context) error {
	err := c.Client.Close(ctx)
	if c.embedded {
		err = errors.Join(err, woodpecker.StopEmbedLogStore())
	}
	return err
}

// Etcd is the seeder's client of the lab's etcd.
func (s *Seeder) Etcd() *clientv3.Client { return s.etcd }

// OpenClient opens a new woodpecker client of the target, as Milvus does.
func (s *Seeder) OpenClient(ctx context.Context) (*Client, error) {
	return s.openClient(ctx, s.etcd, s.target.WALRoot())
}

// openClient opens a new woodpecker client as Milvus configures it, with the
// given root for its objects. etcd may be a view of the lab's etcd; it stays the
// caller's to close.
func (s *Seeder) openClient(ctx context.Context, etcd *clientv3.Client, root string) (*Client, error) {
	cfg, err := s.clientConfig(root)
	if err != nil {
		return nil, err
	}
	if s.target.StorageType == StorageService {
		c, err := woodpecker.NewClient(ctx, cfg, etcd, false)
		if err != nil {
			return nil, fmt.Errorf("woodpecker client: %w", err)
		}
		return &Client{Client: c}, nil
	}
	var storage objectstorage.ObjectStorage
	if s.target.StorageType == StorageMinio {
		if storage, err = objectstorage.NewObjectStorage(ctx, cfg); err != nil {
			return nil, fmt.Errorf("woodpecker object storage: %w", err)
		}
	}
	c, err := woodpecker.NewEmbedClient(ctx, cfg, etcd, storage, false)
	if err != nil {
		return nil, fmt.Errorf("woodpecker client: %w", err)
	}
	return &Client{Client: c, embedded: true}, nil
}

func (s *Seeder) clientConfig(root string) (*config.Configuration, error) {
	cfg, err := config.NewConfiguration()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(s.lab.Objects.Endpoint)
	if err != nil {
		return nil, err
	}
	cfg.Minio.Address = host
	if cfg.Minio.Port, err = net.LookupPort("tcp", port); err != nil {
		return nil, err
	}
	cfg.Minio.AccessKeyID, cfg.Minio.SecretAccessKey = s.lab.Objects.Admin.Name, s.lab.Objects.Admin.Secret
	cfg.Minio.BucketName, cfg.Minio.RootPath, cfg.Minio.CreateBucket = s.target.Bucket, root, false
	cfg.Minio.RequestTimeoutMs = config.DurationMilliseconds{Duration: config.NewDuration(30*time.Second, time.Millisecond)}
	cfg.Etcd.RootPath, cfg.Woodpecker.Meta.Prefix = "", s.target.EtcdPrefix()
	cfg.Woodpecker.Storage.Type, cfg.Woodpecker.Storage.RootPath = s.target.StorageType, s.target.LocalPath
	cfg.Woodpecker.Client.Quorum.BufferPools = config.NewDynamic([]config.QuorumBufferPool{{Name: "default-pool", Seeds: s.lab.NodeSeeds()}})
	cfg.Log.Level, cfg.Log.File.RootPath, cfg.Log.Stdout = "error", "", false
	return cfg, nil
}
