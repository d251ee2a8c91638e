package checkpointreset

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"runbook/internal/claim"
)

// lossy is a way to etcd on which the n-th write transaction, from 1, is lost: the
// request, or, when it is applied, the answer. Reads pass.
type lossy struct {
	n       int64
	applied bool
	writes  atomic.Int64
}

func (l *lossy) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !strings.HasSuffix(method, "/Txn") || l.writes.Add(1) != l.n {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if l.applied {
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "the way to etcd broke")
}

func testALostTransactionIsToldFromALostAnswer(t *testing.T, w *world) {
	for name, applied := range map[string]bool{"lost request": false, "lost answer": true} {
		t.Run(name, func(t *testing.T) {
			s := w.seed(t)
			const segments = 4 // the lock, the marker, collections, then segments
			way := &lossy{n: segments, applied: applied}
			client, err := clientv3.New(clientv3.Config{
				Endpoints: w.lab.Etcd.Endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
				DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(way.intercept)},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			env, r := s.wet(t)
			r.end()
			place := claim.Place{Root: s.root, MetaRoot: s.instance.Settings.MetaRoot()}
			env.Claim, err = claim.Take(t.Context(), client, place, claim.Owner{RunID: env.Journal.Record.ID, PID: os.Getpid()}, claim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer env.Claim.Release(context.WithoutCancel(t.Context()))
			out, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
			if err != nil {
				t.Fatal(err)
			}
			if way.writes.Load() < segments || out.Segments.Rewritten != 19 {
				t.Errorf("%d transactions, %+v", way.writes.Load(), out)
			}
			s.judge(t, "woodpecker")
		})
	}
}

func testAShortOutageOfEtcdIsWaitedFor(t *testing.T, w *world) {
	const outage = time.Second
	s := w.seed(t)
	env, r := s.wet(t)
	reached, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r.onBatch = func(n int) {
		if n == 2 {
			close(reached)
			<-resume
		}
	}
	go func() {
		_, err := run(t.Context(), env, Inputs{TargetWal: "woodpecker"})
		done <- err
	}()
	select {
	case <-reached:
	case err := <-done:
		t.Fatal(err)
	}
	w.lab.Run(t, "stop-etcd")
	close(resume)
	time.Sleep(outage)
	w.lab.Run(t, "start-etcd")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.judge(t, "woodpecker")
}
