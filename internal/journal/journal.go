// Package journal keeps a run's records on disk: who applied what to which
// instance, the plan and its inputs with secrets masked, every event, the
// before-images, the reports. It knows nothing of steps or of Milvus.
//
// A run's folder, {state dir}/runs/{run id}, mode 0700:
//
//	run.json              Record: written once, before anything else
//	plan.yaml             the plan as applied, secrets masked
//	inputs.json           parameters and instance settings, secrets as references
//	events.jsonl          one event.Event a line, appended
//	{step}.before.zst     before-image of a step, sealed with a checksum
//	report.md report.html made from the above when the run ends
package journal

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"runbook/internal/event"
	"runbook/internal/failpoint"
	"runbook/internal/fault"
)

const (
	dirPerm  = 0o700
	filePerm = 0o600

	recordFile = "run.json"
	planFile   = "plan.yaml"
	inputsFile = "inputs.json"
	eventsFile = "events.jsonl"
)

// Run is the folder of a run that is under way. Its methods are safe for
// concurrent use.
type Run struct {
	Record Record

	dir    string
	mask   func([]byte) []byte
	events *os.File

	mu  sync.Mutex
	err error // the first failure to append; reported at the next boundary
}

// Dir is the run's folder.
func (r *Run) Dir() string { return r.dir }

// Append records an event. When sync is set the event and all before it are on
// disk when Append returns nil, and only then; otherwise a failure is kept and
// returned by the next Append that syncs.
func (r *Run) Append(e event.Event, sync bool) error {
	line, err := json.Marshal(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		_, err = r.events.Write(append(r.mask(line), '\n'))
	}
	if err != nil && r.err == nil {
		r.err = writeError(r.events.Name(), err)
	}
	if !sync {
		return nil
	}
	if r.err != nil {
		return r.err
	}
	if err := r.events.Sync(); err != nil {
		r.err = writeError(r.events.Name(), err)
		return r.err
	}
	failpoint.Hit("journal/" + string(e.Event))
	return nil
}

// Close ends the journal.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.events.Close())
}

// writeFile writes a small file durably under its final name.
func writeFile(path string, data []byte) error {
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeError says what an operator can do about a journal that cannot be written.
func writeError(path string, err error) error {
	if already, ok := errors.AsType[*fault.Error](err); ok {
		return already
	}
	f := fault.Fail("journal.write", "the journal cannot be written").At(path).Because(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, io.ErrShortWrite):
		f.Code = "journal.no-space"
		f.Hint("free space there, or name another place with --state-dir")
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		f.Code = "journal.read-only"
		f.Hint("make it writable for you, or name another place with --state-dir")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, os.ErrExist):
		f.Code = "journal.not-a-folder"
		f.Hint("something else has that name: name another place with --state-dir")
	default:
		f.Hint("name another place with --state-dir")
	}
	return f
}
