package checkpointreset

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"runbook/internal/fault"
	"runbook/internal/journal"
	"runbook/internal/step"
)

// A before-image of this step is JSON, one value a line: the header, then one
// record for each key that the run touches, in the order of its writes.

// imageFormat grows when the meaning of a field changes.
const imageFormat = 1

type header struct {
	Format    int    `json:"format"`
	Step      string `json:"step"` // the step type
	MetaRoot  string `json:"metaRoot"`
	TargetWal string `json:"targetWal"`
	Revision  int64  `json:"revision"` // at which everything was read
}

type record struct {
	Group       string `json:"group"` // kind of key, for people
	Key         string `json:"key"`
	Value       []byte `json:"value"`       // as it was
	ModRevision int64  `json:"modRevision"` // of that value
	After       string `json:"after"`       // SHA-256 of what the run writes; empty: it removes the key
}

func sumOf(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// takeImage reads the instance, passes the gates and makes durable what a run
// would change. No image and no error means that there is nothing to change.
func takeImage(ctx context.Context, env *step.Env, in Inputs) (*journal.Image, *findings, error) {
	var image *imageWriter
	found, err := survey(ctx, env, in, func(head header) (func(change) error, error) {
		if image != nil {
			image.file.Abort()
		}
		var err error
		image, err = newImage(env, head)
		if err != nil {
			return nil, err
		}
		return image.add, nil
	})
	if err == nil {
		err = found.refusal()
	}
	if err == nil && found.changes() > 0 {
		committed, err := image.commit()
		return committed, found, err
	}
	if image != nil {
		image.file.Abort()
	}
	return nil, found, err
}

// imageWriter writes records through a buffer.
type imageWriter struct {
	file   *journal.ImageWriter
	buffer *bufio.Writer
	lines  *json.Encoder
}

func newImage(env *step.Env, head header) (*imageWriter, error) {
	file, err := env.Journal.BeforeImage(env.StepID)
	if err != nil {
		return nil, err
	}
	w := &imageWriter{file: file, buffer: bufio.NewWriterSize(file, 1<<16)}
	w.lines = json.NewEncoder(w.buffer)
	return w, w.lines.Encode(head)
}

func (w *imageWriter) add(c change) error {
	r := record{Group: c.group, Key: string(c.kv.Key), Value: c.kv.Value, ModRevision: c.kv.ModRevision}
	if c.after != nil {
		r.After = sumOf(c.after)
	}
	return w.lines.Encode(r)
}

func (w *imageWriter) commit() (*journal.Image, error) {
	if err := w.buffer.Flush(); err != nil {
		w.file.Abort()
		return nil, err
	}
	if err := w.file.Commit(); err != nil {
		return nil, err
	}
	return w.file.Image(), nil
}

// readImage passes the header and then each record to their functions.
func readImage(image *journal.Image, begin func(header) error, each func(record) error) error {
	file, err := image.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	lines := json.NewDecoder(bufio.NewReaderSize(file, 1<<16))
	var head header
	if err := lines.Decode(&head); err != nil || head.Step != stepName || head.Format != imageFormat {
		return fault.Fail("positions.image", "this is no before-image of %s in a form that this version reads", stepName).At(image.Path).
			Hint("use the version of runbook that made it").Because(err)
	}
	if err := begin(head); err != nil {
		return err
	}
	for {
		var r record
		switch err := lines.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", image.Path, err)
		}
		if err := each(r); err != nil {
			return err
		}
	}
}
