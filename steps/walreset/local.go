package walreset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"runbook/internal/failpoint"
	"runbook/internal/fault"
	"runbook/internal/interrupt"
	"runbook/internal/woodpecker"
)

// localCensus is what lies below the local path; storage type local only.
type localCensus struct {
	dir     string
	missing bool // the directory of the logs does not exist
	logs    []woodpecker.LocalLog
	foreign []string
}

// needLocalPath refuses unless the files that Milvus wrote can be reached here.
func (r *reset) needLocalPath() error {
	path := r.settings.WAL.LocalPath
	refusal := func(format string, args ...any) error {
		return fault.Refuse("wal.local-path", format, args...).At("instance.wal.localPath").
			Hint("set it to milvus's woodpecker.storage.rootPath as mounted where runbook runs; with storage type local the WAL is in files that only that path leads to")
	}
	if path == "" {
		return refusal("storage type is local, and localPath is not set")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return refusal("storage type is local, and the path cannot be read: %s", err)
	case !info.IsDir():
		return refusal("%s is no directory", path)
	}
	return nil
}

func (r *reset) openLocal() (*woodpecker.LocalRoot, error) {
	return woodpecker.OpenLocal(r.settings.WAL.LocalPath, r.root)
}

func (r *reset) countLocal(ctx context.Context) (localCensus, error) {
	root, err := r.openLocal()
	if errors.Is(err, fs.ErrNotExist) {
		return localCensus{missing: true, dir: filepath.Join(r.settings.WAL.LocalPath, r.root)}, nil
	}
	if err != nil {
		return localCensus{}, r.localFailed(err)
	}
	defer root.Close()
	c := localCensus{dir: root.Dir()}
	c.logs, c.foreign, err = root.Logs(ctx)
	if err != nil {
		return c, r.localFailed(err)
	}
	for _, l := range c.logs {
		c.foreign = append(c.foreign, l.Foreign...)
	}
	c.logs = slices.DeleteFunc(c.logs, func(l woodpecker.LocalLog) bool { return l.Files == 0 })
	return c, nil
}

func (r *reset) localFailed(err error) *fault.Error {
	return fault.Fail("wal.local-path", "the local files cannot be worked on").At(r.settings.WAL.LocalPath).Because(err).
		Hint("check instance.wal.localPath and that this user may read and delete there")
}

// filesAreHere is objectsAreHere for storage type local.
func (r *reset) filesAreHere(found *inventory) error {
	expected := found.expected(onObjects)
	if len(found.local.logs) > 0 || expected == 0 || found.resumed {
		return nil
	}
	where := found.local.dir
	if found.local.missing && !r.in.AcceptNoObjects {
		return fault.Refuse("wal.local-elsewhere", "there is no such directory, where the files of %d segments should be", expected).At(where).
			Hint("check instance.wal.localPath (milvus's woodpecker.storage.rootPath) and instance.objectStorage.rootPath (it is part of the path)").
			Hint("set acceptNoObjects: true on this step if the files are lost")
	}
	found.warnings = append(found.warnings, fmt.Sprintf("no file is below %s, where those of %d segments should be: that is what a wrong path looks like", where, expected))
	return nil
}

func (r *reset) deleteLocal(ctx context.Context, found *inventory, out *Outputs) error {
	root, err := r.openLocal()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return r.localFailed(err)
	}
	defer root.Close()
	progress := r.env.Report.Progress("deleting local files", 0)
	defer progress.Done()
	for _, l := range found.logs {
		if l.held != nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		removed, err := root.Remove(interrupt.Unit(ctx), l.id)
		out.Local.Files += removed.Files
		out.Local.Bytes += removed.Bytes
		progress.Add(removed.Files)
		if err != nil {
			l.hold(r.localFailed(err))
			continue
		}
		failpoint.Hit("walreset/local-log-removed")
	}
	return nil
}

// lookAgainLocally holds back every log of which files are left.
func (r *reset) lookAgainLocally(ctx context.Context, found *inventory) error {
	left, err := r.countLocal(ctx)
	if err != nil {
		return err
	}
	due := found.due()
	for _, local := range left.logs {
		if l := due[local.ID]; l != nil {
			l.hold(fault.Fail("wal.files-left", "%d files are there after all were deleted: something writes them", local.Files).
				At(fmt.Sprintf("%s/%d", left.dir, local.ID)).
				Hint("find out what writes there, stop it, then apply again"))
		}
	}
	return nil
}
