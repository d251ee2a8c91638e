package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/milvus-io/milvus/client/v2/entity"
	"github.com/milvus-io/milvus/client/v2/index"
	"github.com/milvus-io/milvus/client/v2/milvusclient"
)

const (
	idField     = "id"
	tagField    = "tag"
	scoreField  = "score"
	vectorField = "vector"

	batch   = 500 // rows in one request
	settle  = 30 * time.Second
	nearest = 5
)

// collection is the one collection this program looks after.
type collection struct {
	client *milvusclient.Client
	name   string
}

func open(ctx context.Context, address, name string) (*collection, error) {
	client, err := milvusclient.New(ctx, &milvusclient.ClientConfig{Address: address})
	if err != nil {
		return nil, fmt.Errorf("milvus at %s: %w", address, err)
	}
	return &collection{client: client, name: name}, nil
}

func (c *collection) close(ctx context.Context) error { return c.client.Close(ctx) }

// seed makes the collection hold exactly the rows 0 to rows. One that was left
// half-filled is made anew.
func (c *collection) seed(ctx context.Context, rows int64) error {
	exists, err := c.client.HasCollection(ctx, milvusclient.NewHasCollectionOption(c.name))
	if err != nil {
		return fmt.Errorf("collection %s: %w", c.name, err)
	}
	if exists && c.holds(ctx, rows) {
		return c.check(ctx, rows)
	}
	if exists {
		if err := c.client.DropCollection(ctx, milvusclient.NewDropCollectionOption(c.name)); err != nil {
			return fmt.Errorf("drop collection %s: %w", c.name, err)
		}
	}
	if err := c.create(ctx); err != nil {
		return err
	}
	if err := c.insert(ctx, 0, rows); err != nil {
		return err
	}
	return c.check(ctx, rows)
}

// holds reports whether the rows are there and right. Whatever keeps them from
// being read is a reason to write them again.
func (c *collection) holds(ctx context.Context, rows int64) bool {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	if c.load(ctx) != nil {
		return false
	}
	_, err := c.compareRows(ctx, 0, rows)
	return err == nil
}

func (c *collection) create(ctx context.Context) error {
	schema := entity.NewSchema().WithName(c.name).
		WithField(entity.NewField().WithName(idField).WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName(tagField).WithDataType(entity.FieldTypeVarChar).WithMaxLength(32)).
		WithField(entity.NewField().WithName(scoreField).WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName(vectorField).WithDataType(entity.FieldTypeFloatVector).WithDim(dim))
	// Two shards: two WAL channels carry the rows. A flat index is exact: the answer cannot vary.
	option := milvusclient.NewCreateCollectionOption(c.name, schema).WithShardNum(2).
		WithIndexOptions(milvusclient.NewCreateIndexOption(c.name, vectorField, index.NewFlatIndex(entity.L2)))
	if err := c.client.CreateCollection(ctx, option); err != nil {
		return fmt.Errorf("create collection %s: %w", c.name, err)
	}
	return nil
}

// insert writes rows and flushes them: only flushed rows outlive a WAL that is emptied.
func (c *collection) insert(ctx context.Context, from, to int64) error {
	for start := from; start < to; start += batch {
		rows := columnsOf(start, min(start+batch, to))
		option := milvusclient.NewColumnBasedInsertOption(c.name).
			WithInt64Column(idField, rows.ids).WithVarcharColumn(tagField, rows.tags).
			WithInt64Column(scoreField, rows.scores).WithFloatVectorColumn(vectorField, dim, rows.vectors)
		if _, err := c.client.Insert(ctx, option); err != nil {
			return fmt.Errorf("insert rows from %d: %w", start, err)
		}
	}
	task, err := c.client.Flush(ctx, milvusclient.NewFlushOption(c.name))
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := task.Await(ctx); err != nil {
		return fmt.Errorf("wait for the flush: %w", err)
	}
	return nil
}

func (c *collection) load(ctx context.Context) error {
	task, err := c.client.LoadCollection(ctx, milvusclient.NewLoadCollectionOption(c.name))
	if err != nil {
		return fmt.Errorf("load collection %s: %w", c.name, err)
	}
	if err := task.Await(ctx); err != nil {
		return fmt.Errorf("wait for collection %s to be loaded: %w", c.name, err)
	}
	return nil
}

// check reads everything back in three ways: all rows, a filter, a vector search.
func (c *collection) check(ctx context.Context, rows int64) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	digest, err := c.compareRows(ctx, 0, rows)
	if err != nil {
		return err
	}
	asked, err := c.countRows(ctx, fmt.Sprintf("%s == %q && %s < %d", tagField, "tag-7", idField, rows))
	if err != nil {
		return err
	}
	neighbours, err := c.search(ctx, rows/2, rows)
	if err != nil {
		return err
	}
	fmt.Printf("rows=%d\ndigest=%s\nasked=%d\nneighbours=%s\n", rows, digest, asked, neighbours)
	return nil
}

// write inserts rows, which must not exist, and reads them back.
func (c *collection) write(ctx context.Context, from, to int64) error {
	if to <= from {
		return errors.New("-to must be above -from")
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	if err := c.insert(ctx, from, to); err != nil {
		return err
	}
	digest, err := c.compareRows(ctx, from, to)
	if err != nil {
		return err
	}
	fmt.Printf("rows=%d\ndigest=%s\n", to-from, digest)
	return nil
}

func (c *collection) count(ctx context.Context, from, to int64) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	n, err := c.countRows(ctx, between(from, to))
	if err != nil {
		return err
	}
	fmt.Printf("rows=%d\n", n)
	return nil
}

func between(from, to int64) string {
	return fmt.Sprintf("%s >= %d && %s < %d", idField, from, idField, to)
}

func (c *collection) compareRows(ctx context.Context, from, to int64) (string, error) {
	var all []row
	for start := from; start < to; start += batch {
		rows, err := c.read(ctx, start, min(start+batch, to))
		if err != nil {
			return "", err
		}
		all = append(all, rows...)
	}
	return compare(all, from, to)
}

func (c *collection) read(ctx context.Context, from, to int64) ([]row, error) {
	result, err := c.client.Query(ctx, milvusclient.NewQueryOption(c.name).
		WithFilter(between(from, to)).WithOutputFields(idField, tagField, scoreField).
		WithConsistencyLevel(entity.ClStrong))
	if err != nil {
		return nil, fmt.Errorf("query rows from %d: %w", from, err)
	}
	ids, tags, scores := result.GetColumn(idField), result.GetColumn(tagField), result.GetColumn(scoreField)
	if ids == nil || tags == nil || scores == nil {
		return nil, fmt.Errorf("query rows from %d: the answer lacks a field", from)
	}
	rows := make([]row, ids.Len())
	for i := range rows {
		var errs [3]error
		rows[i].id, errs[0] = ids.GetAsInt64(i)
		rows[i].tag, errs[1] = tags.GetAsString(i)
		rows[i].score, errs[2] = scores.GetAsInt64(i)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("row %d of the answer: %w", i, err)
		}
	}
	return rows, nil
}

func (c *collection) countRows(ctx context.Context, filter string) (int64, error) {
	const field = "count(*)"
	result, err := c.client.Query(ctx, milvusclient.NewQueryOption(c.name).
		WithFilter(filter).WithOutputFields(field).WithConsistencyLevel(entity.ClStrong))
	if err != nil {
		return 0, fmt.Errorf("count rows where %s: %w", filter, err)
	}
	column := result.GetColumn(field)
	if column == nil || column.Len() != 1 {
		return 0, fmt.Errorf("count rows where %s: the answer holds no count", filter)
	}
	return column.GetAsInt64(0)
}

// search lists the ids nearest to a row's vector, in ascending order. Rows written
// later lie far away, and the filter keeps them out all the same.
func (c *collection) search(ctx context.Context, id, rows int64) (string, error) {
	option := milvusclient.NewSearchOption(c.name, nearest, []entity.Vector{entity.FloatVector(vectorOf(id))}).
		WithANNSField(vectorField).WithFilter(between(0, rows)).WithConsistencyLevel(entity.ClStrong)
	results, err := c.client.Search(ctx, option)
	if err != nil {
		return "", fmt.Errorf("search: %w", err)
	}
	if len(results) != 1 || results[0].IDs == nil {
		return "", errors.New("search: want one result set with ids")
	}
	if results[0].Err != nil {
		return "", fmt.Errorf("search: %w", results[0].Err)
	}
	ids := make([]int64, results[0].IDs.Len())
	for i := range ids {
		if ids[i], err = results[0].IDs.GetAsInt64(i); err != nil {
			return "", fmt.Errorf("search: %w", err)
		}
	}
	slices.Sort(ids)
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ","), nil
}
