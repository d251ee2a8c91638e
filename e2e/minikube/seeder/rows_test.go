package main

import (
	"slices"
	"strings"
	"testing"
)

func rowsOf(from, to int64) (rows []row) {
	for id := from; id < to; id++ {
		rows = append(rows, rowOf(id))
	}
	return rows
}

func TestRowsReadBackAreComparedOneByOne(t *testing.T) {
	reversed := rowsOf(100, 200)
	slices.Reverse(reversed)
	changed := rowsOf(100, 200)
	changed[7].score++
	doubled := append(rowsOf(100, 199), rowOf(100))
	for name, c := range map[string]struct {
		rows []row
		err  string
	}{
		"all of them, in any order":       {rows: reversed},
		"one missing":                     {rows: rowsOf(100, 199), err: "read 99 rows"},
		"one too many":                    {rows: rowsOf(100, 201), err: "read 101 rows"},
		"one twice in place of another":   {rows: doubled, err: "want {id:101"},
		"one with another row's field":    {rows: changed, err: "read the row {id:107"},
		"a row from outside of the range": {rows: append(rowsOf(101, 200), rowOf(7)), err: "read the row {id:7 "},
	} {
		t.Run(name, func(t *testing.T) {
			digest, err := compare(c.rows, 100, 200)
			if c.err == "" && (err != nil || digest == "") {
				t.Fatalf("got %q, %v", digest, err)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want an error with %q", err, c.err)
			}
		})
	}
}

func TestTheDigestDependsOnTheRowsAlone(t *testing.T) {
	reversed := rowsOf(0, 50)
	slices.Reverse(reversed)
	a, err := compare(rowsOf(0, 50), 0, 50)
	if err != nil {
		t.Fatal(err)
	}
	b, err := compare(reversed, 0, 50)
	if err != nil {
		t.Fatal(err)
	}
	other, err := compare(rowsOf(1, 51), 1, 51)
	if err != nil {
		t.Fatal(err)
	}
	if a != b || a == other {
		t.Errorf("digests %s, %s of the same rows and %s of others", a, b, other)
	}
}

func TestTheNearestRowsAreThoseWithTheNearestIDs(t *testing.T) {
	distance := func(a, b int64) (sum float64) {
		va, vb := vectorOf(a), vectorOf(b)
		for i := range va {
			d := float64(va[i] - vb[i])
			sum += d * d
		}
		return sum
	}
	if distance(700, 701) >= distance(700, 702) || distance(700, 699) >= distance(700, 702) {
		t.Error("vectors do not lie on a line")
	}
}
