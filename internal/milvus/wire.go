package milvus

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The reasons why a value is left alone. They are told apart because they mean
// different things: a tombstone is Milvus's way to say that a key was dropped, the
// other two are damage.
var (
	ErrTombstone = errors.New("a tombstone: dropped")
	ErrEmpty     = errors.New("the value is empty")
	ErrCorrupt   = errors.New("the value cannot be decoded")
)

// tombstone is what rootcoord's old suffix snapshots write for "dropped".
const tombstone = "\xe2\x9b\xbc"

// message is a protobuf message taken apart into its fields, each still in the
// bytes that it had. What is not set stays byte for byte and in place, which no
// decode and encode of a typed message can promise: that moves unknown fields to
// the end and shuffles maps.
type message []field

type field struct {
	number protowire.Number
	kind   protowire.Type
	raw    []byte // tag and value as stored
	value  []byte // the value without the tag, and for bytes without the length
}

// open takes apart a value of etcd.
func open(value []byte) (message, error) {
	switch {
	case len(value) == 0:
		return nil, ErrEmpty
	case string(value) == tombstone:
		return nil, ErrTombstone
	}
	return parse(value)
}

// parse takes apart an embedded message, which may be empty.
func parse(b []byte) (message, error) {
	var m message
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return nil, corrupt(protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(number, kind, b[tag:])
		if size < 0 {
			return nil, corrupt(protowire.ParseError(size))
		}
		f := field{number: number, kind: kind, raw: b[:tag+size], value: b[tag : tag+size]}
		if kind == protowire.BytesType {
			f.value, _ = protowire.ConsumeBytes(f.value)
		}
		m, b = append(m, f), b[tag+size:]
	}
	return m, nil
}

func corrupt(err error) error { return fmt.Errorf("%w: %w", ErrCorrupt, err) }

// encode puts the message together again.
func (m message) encode() []byte {
	size := 0
	for _, f := range m {
		size += len(f.raw)
	}
	b := make([]byte, 0, size)
	for _, f := range m {
		b = append(b, f.raw...)
	}
	return b
}

// find calls visit for each occurrence of a field. One of another wire type than
// expected is damage, or a schema that is not known here.
func (m message) find(number protowire.Number, kind protowire.Type, visit func(*field) error) error {
	for i := range m {
		if m[i].number != number {
			continue
		}
		if m[i].kind != kind {
			return fmt.Errorf("%w: field %d has wire type %d, want %d", ErrCorrupt, number, m[i].kind, kind)
		}
		if err := visit(&m[i]); err != nil {
			return err
		}
	}
	return nil
}

// varint is the value of a number, 0 when absent; as everywhere in protobuf, the
// last of several counts.
func (m message) varint(number protowire.Number) (uint64, error) {
	var value uint64
	err := m.find(number, protowire.VarintType, func(f *field) error {
		value, _ = protowire.ConsumeVarint(f.value)
		return nil
	})
	return value, err
}

// bytes is the value of a bytes field, nil when absent; the last of several counts.
func (m message) bytes(number protowire.Number) ([]byte, error) {
	var value []byte
	err := m.find(number, protowire.BytesType, func(f *field) error {
		value = f.value
		return nil
	})
	return value, err
}

// text is bytes that must be UTF-8, as every protobuf string is.
func (m message) text(number protowire.Number) (string, error) {
	value, err := m.bytes(number)
	if err == nil && !utf8.Valid(value) {
		err = fmt.Errorf("%w: field %d is not UTF-8", ErrCorrupt, number)
	}
	return string(value), err
}

// embedded is the message in a field and whether there is one. Several
// occurrences are one message, their fields one after the other.
func (m message) embedded(number protowire.Number) (message, bool, error) {
	var joined []byte
	found := false
	err := m.find(number, protowire.BytesType, func(f *field) error {
		if found {
			joined = append(joined[:len(joined):len(joined)], f.value...)
		} else {
			joined, found = f.value, true
		}
		return nil
	})
	if err != nil || !found {
		return nil, false, err
	}
	inner, err := parse(joined)
	return inner, true, err
}

// setVarint gives a number a value; 0 removes it, as proto3 writes no zeros.
func (m message) setVarint(number protowire.Number, value uint64) message {
	if value == 0 {
		return m.drop(number)
	}
	return m.put(newField(number, protowire.VarintType, protowire.AppendVarint(nil, value)))
}

// setBytes gives a bytes or string field a value; empty removes it.
func (m message) setBytes(number protowire.Number, value []byte) message {
	if len(value) == 0 {
		return m.drop(number)
	}
	return m.put(newBytes(number, value))
}

// setEmbedded puts a message into a field; an empty one stays present.
func (m message) setEmbedded(number protowire.Number, inner message) message {
	return m.put(newBytes(number, inner.encode()))
}

func newBytes(number protowire.Number, value []byte) field {
	f := newField(number, protowire.BytesType, protowire.AppendBytes(nil, value))
	f.value = value
	return f
}

func newField(number protowire.Number, kind protowire.Type, value []byte) field {
	return field{number: number, kind: kind, value: value, raw: append(protowire.AppendTag(nil, number, kind), value...)}
}

// put gives a singular field one occurrence: where its first one was, else before
// the first field of a higher number.
func (m message) put(f field) message {
	at := slices.IndexFunc(m, func(old field) bool { return old.number == f.number })
	if at < 0 {
		at = slices.IndexFunc(m, func(old field) bool { return old.number > f.number })
	}
	if at < 0 {
		at = len(m)
	}
	return slices.Insert(m.drop(f.number), at, f)
}

// drop removes every occurrence of a field and leaves m as it was.
func (m message) drop(number protowire.Number) message {
	return slices.DeleteFunc(slices.Clone(m), func(f field) bool { return f.number == number })
}
