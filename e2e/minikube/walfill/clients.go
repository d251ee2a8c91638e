package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/zilliztech/woodpecker/common/config"
	"github.com/zilliztech/woodpecker/common/logger"
	"github.com/zilliztech/woodpecker/woodpecker"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	accessKeyEnv = "MINIO_ACCESS_KEY"
	secretKeyEnv = "MINIO_SECRET_KEY"
)

func (t *target) openEtcd(ctx context.Context) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: list(t.etcd), DialTimeout: 5 * time.Second, Context: ctx, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("etcd %s: %w", t.etcd, err)
	}
	return c, nil
}

func (t *target) openObjects() (*minio.Client, error) {
	c, err := minio.New(t.objects, &minio.Options{
		Creds: credentials.NewStaticV4(os.Getenv(accessKeyEnv), os.Getenv(secretKeyEnv), ""),
	})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", t.objects, err)
	}
	return c, nil
}

// openWoodpecker opens a client configured as Milvus 3.0 configures its own:
// etcd root and metadata prefix both set, woodpecker's root below Milvus's.
func (t *target) openWoodpecker(ctx context.Context, etcd *clientv3.Client, seeds string) (woodpecker.Client, error) {
	// What goes wrong comes back as an error; its log would go to standard output.
	logger.ReplaceGlobals(zap.NewNop())
	cfg, err := config.NewConfiguration()
	if err != nil {
		return nil, fmt.Errorf("woodpecker configuration: %w", err)
	}
	host, port, err := net.SplitHostPort(t.objects)
	if err != nil {
		return nil, fmt.Errorf("object store %q: %w", t.objects, err)
	}
	cfg.Minio.Address = host
	if cfg.Minio.Port, err = net.LookupPort("tcp", port); err != nil {
		return nil, fmt.Errorf("object store %q: %w", t.objects, err)
	}
	cfg.Minio.AccessKeyID, cfg.Minio.SecretAccessKey = os.Getenv(accessKeyEnv), os.Getenv(secretKeyEnv)
	cfg.Minio.BucketName, cfg.Minio.RootPath, cfg.Minio.CreateBucket = t.bucket, t.walRoot(), false
	// The default of one second is short for a store that shares a laptop with Milvus.
	cfg.Minio.RequestTimeoutMs = config.DurationMilliseconds{Duration: config.NewDuration(30*time.Second, time.Millisecond)}
	cfg.Etcd.RootPath, cfg.Woodpecker.Meta.Prefix = t.root, t.metaPrefix
	cfg.Woodpecker.Storage.Type = "service"
	cfg.Woodpecker.Client.Quorum.BufferPools = config.NewDynamic([]config.QuorumBufferPool{{Name: "default-pool", Seeds: list(seeds)}})
	cfg.Log.Level, cfg.Log.File.RootPath, cfg.Log.Stdout = "error", "", false
	c, err := woodpecker.NewClient(ctx, cfg, etcd, false)
	if err != nil {
		return nil, fmt.Errorf("woodpecker client: %w", err)
	}
	return c, nil
}
