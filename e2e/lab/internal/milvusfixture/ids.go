package milvusfixture

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/msgpb"
	"google.golang.org/protobuf/encoding/protowire"
)

var walNames = map[string]commonpb.WALName{
	"rocksmq":    commonpb.WALName_RocksMQ,
	"pulsar":     commonpb.WALName_Pulsar,
	"kafka":      commonpb.WALName_Kafka,
	"woodpecker": commonpb.WALName_WoodPecker,
}

// rawID is message n of a WAL as bytes; -1 is the earliest.
func rawID(wal commonpb.WALName, n int64) []byte {
	switch wal {
	case commonpb.WALName_Kafka, commonpb.WALName_RocksMQ:
		return binary.LittleEndian.AppendUint64(nil, uint64(max(n, 0)))
	case commonpb.WALName_Pulsar:
		if n < 0 {
			return varints(pulsarNone, pulsarNone, pulsarNone, pulsarNone, absent, 0)
		}
		return varints(uint64(5+n), 17, 0, pulsarNone, absent, 0)
	case commonpb.WALName_WoodPecker:
		if n < 0 {
			return []byte{}
		}
		return varints(uint64(5+n), 17)
	}
	return nil
}

const (
	pulsarNone = ^uint64(0) // -1
	absent     = ^uint64(1) // no such field; -2 is never a part of an id
)

// varints encodes values as fields 1, 2, 3 and so on.
func varints(values ...uint64) []byte {
	var b []byte
	for i, v := range values {
		if v != absent {
			b = append(b, unknownField(protowire.Number(i+1), v)...)
		}
	}
	return b
}

// textID is the same as text.
func textID(wal commonpb.WALName, n int64) string {
	if wal == commonpb.WALName_Kafka || wal == commonpb.WALName_RocksMQ {
		return strconv.FormatUint(uint64(max(n, 0)), 36)
	}
	return base64.StdEncoding.EncodeToString(rawID(wal, n))
}

func messageID(wal commonpb.WALName, n int64) *commonpb.MessageID {
	return &commonpb.MessageID{Id: textID(wal, n), WALName: wal}
}

func position(wal commonpb.WALName, n int64, channel string) *msgpb.MsgPosition {
	return &msgpb.MsgPosition{ChannelName: channel, MsgID: rawID(wal, n), MsgGroup: "datacoord", Timestamp: tsBase + uint64(n), WALName: wal}
}
