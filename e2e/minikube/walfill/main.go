// Command walfill writes logs through woodpecker's own client, so that their
// data lies on all three tiers, and counts what each tier but the nodes' disks
// holds. It runs in a pod beside the release: a woodpecker client dials nodes at
// the names that they advertise, which only resolve there.
//
// It shares no code with the runbook program, whose work it is used to judge.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: walfill fill  [flags]   create logs with data in etcd, object store and nodes
       walfill count [flags]   print what etcd and the object store hold, a key=value a line

The object store's credentials come from MINIO_ACCESS_KEY and MINIO_SECRET_KEY.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "walfill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	var t target
	flags := flag.NewFlagSet("walfill "+args[0], flag.ContinueOnError)
	flags.StringVar(&t.etcd, "etcd", "", "etcd endpoints, host:port,...")
	flags.StringVar(&t.root, "root", "by-dev", "milvus's etcd.rootPath")
	flags.StringVar(&t.metaPrefix, "meta-prefix", "woodpecker", "milvus's woodpecker.meta.prefix")
	flags.StringVar(&t.objects, "objects", "", "object store, host:port")
	flags.StringVar(&t.bucket, "bucket", "a-bucket", "milvus's minio.bucketName")
	flags.StringVar(&t.objectRoot, "object-root", "files", "milvus's minio.rootPath")
	timeout := flags.Duration("timeout", 5*time.Minute, "give up after")

	var do func(context.Context) error
	switch args[0] {
	case "fill":
		f := fill{target: &t}
		flags.StringVar(&f.seeds, "seeds", "", "log-store nodes, host:port,...")
		flags.StringVar(&f.name, "name", "runbook-e2e", "first part of the logs' names")
		flags.IntVar(&f.logs, "logs", 3, "logs to create")
		flags.IntVar(&f.segments, "segments", 2, "segments to add to each log")
		flags.IntVar(&f.bytes, "bytes", 64<<10, "size of the entry in each segment")
		do = f.run
	case "count":
		c := count{target: &t}
		flags.Int64Var(&c.upTo, "up-to", 0, "count logs with an id up to this apart, as *_up_to")
		do = c.run
	default:
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 || t.etcd == "" || t.objects == "" {
		return fmt.Errorf("%s takes flags only, -etcd and -objects among them", args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	return do(ctx)
}

// target addresses the WAL of one Milvus.
type target struct {
	etcd, root, metaPrefix      string
	objects, bucket, objectRoot string
}

// etcdPrefix is where woodpecker keeps this instance's metadata.
func (t *target) etcdPrefix() string { return path.Join(t.root, t.metaPrefix) }

// walRoot is woodpecker's root in the bucket, as Milvus derives it.
func (t *target) walRoot() string { return t.objectRoot + "/wp" }

func list(commas string) []string {
	return strings.FieldsFunc(commas, func(r rune) bool { return r == ',' })
}
