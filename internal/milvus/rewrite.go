package milvus

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions below put a position into a stored value and change nothing else:
// timestamps, time ticks, unknown fields, maps and the order of fields stay byte
// for byte. Each says whether there was anything to change; if not, the value is
// returned as it was. Where a writer put a singular field several times, which
// protobuf allows, a change leaves the field once, with the meaning it had.
//
// None of them knows which keys deserve it: see ReadChannelCheckpoint for the
// marker of a dropped channel, which looks like a position and is none.

// RewriteCollection sets the start positions of an etcdpb.CollectionInfo on the
// physical channels that in accepts.
func (p Position) RewriteCollection(value []byte, in func(pchannel string) bool) ([]byte, bool, error) {
	m, err := open(value)
	if err != nil {
		return nil, false, err
	}
	changed := false
	err = m.find(collectionStarts, protowire.BytesType, func(f *field) error {
		pair, err := parse(f.value)
		if err != nil {
			return err
		}
		channel, err := pair.text(pairKey)
		if err != nil || !in(channel) {
			return err
		}
		// No WAL is named here: Milvus decodes start positions with the one of mq.type.
		id, err := pair.bytes(pairData)
		if err != nil || p.is(p.WAL, id) {
			return err
		}
		*f = newBytes(collectionStarts, pair.setBytes(pairData, p.Raw).encode())
		changed = true
		return nil
	})
	return m.result(value, changed, err)
}

// RewriteSegment sets the start and the DML position of a datapb.SegmentInfo. A
// position that is absent stays absent: an imported segment never had one.
func (p Position) RewriteSegment(value []byte) ([]byte, bool, error) {
	m, err := open(value)
	if err != nil {
		return nil, false, err
	}
	changed := false
	for _, number := range []protowire.Number{segmentStart, segmentDML} {
		position, present, err := m.embedded(number)
		if err != nil {
			return nil, false, err
		}
		if !present {
			continue
		}
		position, differs, err := p.into(position)
		if err != nil {
			return nil, false, err
		}
		if differs {
			m, changed = m.setEmbedded(number, position), true
		}
	}
	return m.result(value, changed, nil)
}

// RewriteChannelCheckpoint sets the position of a msgpb.MsgPosition.
func (p Position) RewriteChannelCheckpoint(value []byte) ([]byte, bool, error) {
	m, err := open(value)
	if err != nil {
		return nil, false, err
	}
	m, changed, err := p.into(m)
	return m.result(value, changed, err)
}

// into sets the id and the WAL of a msgpb.MsgPosition.
func (p Position) into(position message) (message, bool, error) {
	id, err := position.bytes(positionID)
	if err != nil {
		return nil, false, err
	}
	wal, err := position.varint(positionWAL)
	if err != nil || p.is(WAL(wal), id) {
		return position, false, err
	}
	return position.setBytes(positionID, p.Raw).setVarint(positionWAL, uint64(p.WAL)), true, nil
}

// RewriteConsumeCheckpoint sets the message id of a streamingpb.WALCheckpoint and
// removes a pending online switch, which speaks of the old WAL. A missing message
// id is added: Milvus dereferences it.
func (p Position) RewriteConsumeCheckpoint(value []byte) ([]byte, bool, error) {
	m, err := open(value)
	if err != nil {
		return nil, false, err
	}
	id, present, err := m.embedded(checkpointMessage)
	if err != nil {
		return nil, false, err
	}
	text, err := id.text(messageIDText)
	if err != nil {
		return nil, false, err
	}
	wal, err := id.varint(messageIDWAL)
	if err != nil {
		return nil, false, err
	}
	changed := false
	if !present || text != p.Text || WAL(wal) != p.WAL {
		id = id.setBytes(messageIDText, []byte(p.Text)).setVarint(messageIDWAL, uint64(p.WAL))
		m, changed = m.setEmbedded(checkpointMessage, id), true
	}
	if rest := m.drop(checkpointAlterWAL); len(rest) != len(m) {
		m, changed = rest, true
	}
	return m.result(value, changed, nil)
}

func (m message) result(value []byte, changed bool, err error) ([]byte, bool, error) {
	if err != nil || !changed {
		return value, false, err
	}
	return m.encode(), true, nil
}
