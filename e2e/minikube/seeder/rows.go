package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

const dim = 8

// row is one row; everything in it follows from its primary key.
type row struct {
	id    int64
	tag   string
	score int64
}

func rowOf(id int64) row {
	return row{id: id, tag: fmt.Sprintf("tag-%d", id%10), score: (id * 7919) % 10007}
}

// vectorOf spreads rows on a line, so that the neighbours of a row are the rows
// with the nearest ids.
func vectorOf(id int64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(id) / float32(i+1)
	}
	return v
}

// columns are rows as the SDK takes them.
type columns struct {
	ids, scores []int64
	tags        []string
	vectors     [][]float32
}

func columnsOf(from, to int64) (c columns) {
	for id := from; id < to; id++ {
		r := rowOf(id)
		c.ids, c.scores, c.tags = append(c.ids, r.id), append(c.scores, r.score), append(c.tags, r.tag)
		c.vectors = append(c.vectors, vectorOf(id))
	}
	return c
}

// compare checks rows read back against what they must be: each id of [from, to)
// once, with its own fields. It returns a digest of them in the order of their ids.
func compare(got []row, from, to int64) (string, error) {
	got = slices.SortedFunc(slices.Values(got), func(a, b row) int { return int(a.id - b.id) })
	if want := to - from; int64(len(got)) != want {
		return "", fmt.Errorf("read %d rows with an id from %d to %d, want %d", len(got), from, to, want)
	}
	hash := sha256.New()
	for i, r := range got {
		if want := rowOf(from + int64(i)); r != want {
			return "", fmt.Errorf("read the row %+v, want %+v", r, want)
		}
		// Written out: a digest that is compared between runs must not depend on how Go prints.
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(r.id)))
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(r.score)))
		hash.Write([]byte(r.tag))
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
