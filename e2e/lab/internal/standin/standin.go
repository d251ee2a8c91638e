// Package standin stands in for Milvus's streaming node, and registers sessions
// for the other roles as a standalone Milvus does. It is no Milvus: it does with
// the WAL what Milvus does when it starts, and no more. It reads the consume
// checkpoints, decides the WAL by them, opens its logs through the woodpecker
// client, replays from the positions, appends time ticks and moves the
// checkpoints. Where Milvus would panic, it refuses to start and says why.
package standin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/msgpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/streamingpb"
	"github.com/zilliztech/woodpecker/woodpecker"
	"github.com/zilliztech/woodpecker/woodpecker/log"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"runbook/e2e/lab/internal/milvus"
)

const (
	leaseTTL   = 10 // seconds
	tickEvery  = 100 * time.Millisecond
	openWithin = 30 * time.Second
)

// roles are those that a standalone Milvus 2.6 registers.
var roles = []string{"mixcoord", "proxy", "querynode", "datanode", "streamingnode"}

// Options of a stand-in.
type Options struct {
	Root  string   // Milvus's etcd.rootPath
	Stall []string // physical channels whose checkpoint never moves
}

// StandIn is one that runs.
type StandIn struct {
	Health string // host:port that answers GET /healthz

	options Options
	etcd    *clientv3.Client
	client  woodpecker.Client
	lease   clientv3.LeaseID
	server  int64 // its server id
	logs    []*channel
	http    *http.Server
	cancel  context.CancelFunc
	group   *errgroup.Group
}

// channel is one physical channel that it serves.
type channel struct {
	name   string
	key    string // of its consume checkpoint
	writer log.LogWriter
	handle log.LogHandle
}

// Start decides, opens and registers. An error is what Milvus would have panicked
// with; nothing is left behind then. etcd and client stay the caller's to close.
func Start(ctx context.Context, etcd *clientv3.Client, client woodpecker.Client, options Options) (*StandIn, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	s := &StandIn{options: options, etcd: etcd, client: client}
	if err := s.agree(ctx); err != nil {
		return nil, err
	}
	if err := s.register(ctx); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, s.serve(context.WithoutCancel(ctx))
}

func (s *StandIn) meta(path string) string { return milvus.MetaRoot(s.options.Root) + "/" + path }

// agree reads every checkpoint the way in which Milvus decodes it.
func (s *StandIn) agree(ctx context.Context) error {
	pin, err := s.etcd.Get(ctx, s.options.Root+"/config/mqtype")
	if err != nil {
		return err
	}
	if len(pin.Kvs) > 0 && string(pin.Kvs[0].Value) != "woodpecker" {
		return fmt.Errorf("panic: mq.type is %s in etcd, and no such WAL is here", pin.Kvs[0].Value)
	}
	channels, err := s.etcd.Get(ctx, s.meta("datacoord-meta/channel-cp/"), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range channels.Kvs {
		position := &msgpb.MsgPosition{}
		if err := proto.Unmarshal(kv.Value, position); err != nil {
			return fmt.Errorf("panic: %s: %w", kv.Key, err)
		}
		if position.WALName != commonpb.WALName_WoodPecker && position.Timestamp != ^uint64(0) {
			return fmt.Errorf("panic: %s: a position in %s, and the WAL is woodpecker", kv.Key, position.WALName)
		}
	}
	return nil
}

func (s *StandIn) register(ctx context.Context) error {
	counter, err := s.etcd.Get(ctx, s.meta("session/id"))
	if err != nil {
		return err
	}
	if len(counter.Kvs) > 0 {
		s.server, _ = strconv.ParseInt(string(counter.Kvs[0].Value), 10, 64)
	}
	s.server++
	lease, err := s.etcd.Grant(ctx, leaseTTL)
	if err != nil {
		return err
	}
	s.lease = lease.ID
	ops := []clientv3.Op{clientv3.OpPut(s.meta("session/id"), strconv.FormatInt(s.server, 10))}
	for _, role := range roles {
		value, err := milvus.SessionValue(role, s.server, int64(s.lease))
		if err != nil {
			return err
		}
		ops = append(ops, clientv3.OpPut(milvus.SessionKey(s.options.Root, role, s.server), value, clientv3.WithLease(s.lease)))
	}
	_, err = s.etcd.Txn(ctx).Then(ops...).Commit()
	return err
}

// open opens the log of each channel that streamingcoord lists, replays it from
// its checkpoint and takes the channel over.
func (s *StandIn) open(ctx context.Context) error {
	prefix := s.meta("streamingcoord-meta/pchannel/")
	listed, err := s.etcd.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range listed.Kvs {
		name := strings.TrimPrefix(string(kv.Key), prefix)
		c, err := s.openChannel(ctx, name)
		if err != nil {
			return fmt.Errorf("panic: open the WAL of %s: %w", name, err)
		}
		s.logs = append(s.logs, c)
		if err := s.assign(ctx, kv.Value, string(kv.Key)); err != nil {
			return err
		}
	}
	return nil
}

func (s *StandIn) openChannel(ctx context.Context, name string) (*channel, error) {
	c := &channel{name: name, key: s.meta("streamingnode-meta/wal/" + name + "/consume-checkpoint")}
	from, err := s.checkpoint(ctx, c.key)
	if err != nil {
		return nil, err
	}
	exists, err := s.client.LogExists(ctx, name)
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := s.client.CreateLog(ctx, name); err != nil {
			return nil, err
		}
	}
	if c.handle, err = s.client.OpenLog(ctx, name); err != nil {
		return nil, err
	}
	if exists {
		if err := replay(ctx, c.handle, from); err != nil {
			return nil, err
		}
	}
	c.writer, err = c.handle.OpenLogWriter(ctx)
	return c, err
}

// checkpoint decodes a position as Milvus does: by the WAL that it names.
func (s *StandIn) checkpoint(ctx context.Context, key string) (*log.LogMessageId, error) {
	found, err := s.etcd.Get(ctx, key)
	if err != nil || len(found.Kvs) == 0 {
		from := log.EarliestLogMessageID()
		return &from, err
	}
	stored := &streamingpb.WALCheckpoint{}
	if err := proto.Unmarshal(found.Kvs[0].Value, stored); err != nil {
		return nil, err
	}
	id := stored.GetMessageId()
	if id.GetWALName() != commonpb.WALName_WoodPecker {
		return nil, fmt.Errorf("its consume checkpoint names %s, and no such WAL is here", id.GetWALName())
	}
	raw, err := base64.StdEncoding.DecodeString(id.GetId())
	if err != nil {
		return nil, err
	}
	return log.DeserializeLogMessageId(raw)
}

// replay reads one entry from the position on: that it can be read is the point.
func replay(ctx context.Context, handle log.LogHandle, from *log.LogMessageId) error {
	reader, err := handle.OpenLogReader(ctx, from, "milvus-stand-in")
	if err != nil {
		return err
	}
	return reader.Close(ctx)
}

func (s *StandIn) assign(ctx context.Context, value []byte, key string) error {
	channel := &streamingpb.PChannelMeta{}
	if err := proto.Unmarshal(value, channel); err != nil {
		return err
	}
	channel.Node = &streamingpb.StreamingNodeInfo{ServerId: s.server, Address: "127.0.0.1:22222"}
	channel.State = streamingpb.PChannelMetaState_PCHANNEL_META_STATE_ASSIGNED
	raw, err := proto.Marshal(channel)
	if err != nil {
		return err
	}
	_, err = s.etcd.Put(ctx, key, string(raw))
	return err
}

// serve keeps the lease, answers /healthz and appends time ticks until Stop.
func (s *StandIn) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	s.Health = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "OK") })
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = errgroup.WithContext(ctx)
	renewals, err := s.etcd.KeepAlive(ctx, s.lease)
	if err != nil {
		return errors.Join(err, listener.Close(), s.close(ctx))
	}
	s.group.Go(func() error {
		for range renewals {
		}
		return nil
	})
	s.group.Go(func() error {
		_ = s.http.Serve(listener) // ends with Stop
		return nil
	})
	for _, c := range s.logs {
		s.group.Go(func() error { return s.tick(ctx, c) })
	}
	return nil
}

// tick appends a time tick again and again, and moves the checkpoint behind it.
func (s *StandIn) tick(ctx context.Context, c *channel) error {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		written := c.writer.Write(ctx, &log.WriteMessage{Payload: []byte("time tick")})
		if written.Err != nil || slices.Contains(s.options.Stall, c.name) {
			continue // the next tick tries again, as Milvus's do
		}
		if err := s.move(ctx, c, written.LogMessageId); err != nil && ctx.Err() == nil {
			continue
		}
	}
}

func (s *StandIn) move(ctx context.Context, c *channel, id *log.LogMessageId) error {
	found, err := s.etcd.Get(ctx, c.key)
	if err != nil {
		return err
	}
	checkpoint := &streamingpb.WALCheckpoint{RecoveryMagic: 1}
	if len(found.Kvs) > 0 {
		if err := proto.Unmarshal(found.Kvs[0].Value, checkpoint); err != nil {
			return err
		}
	}
	checkpoint.MessageId = &commonpb.MessageID{Id: base64.StdEncoding.EncodeToString(id.Serialize()), WALName: commonpb.WALName_WoodPecker}
	checkpoint.TimeTick = uint64(time.Now().UnixMilli()) << 18 // a hybrid timestamp
	raw, err := proto.Marshal(checkpoint)
	if err != nil {
		return err
	}
	_, err = s.etcd.Put(ctx, c.key, string(raw))
	return err
}

// Stop ends it as a graceful shutdown of Milvus does: logs closed, sessions gone.
func (s *StandIn) Stop(ctx context.Context) error {
	s.cancel()
	err := s.http.Close()
	return errors.Join(err, s.group.Wait(), s.close(ctx))
}

func (s *StandIn) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var errs []error
	for _, c := range s.logs {
		errs = append(errs, c.writer.Close(ctx), c.handle.Close(ctx))
	}
	s.logs = nil
	if s.lease != 0 {
		_, err := s.etcd.Revoke(ctx, s.lease)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
