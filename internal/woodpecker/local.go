package woodpecker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// LocalLog is a log's directory under the local root of an embedded woodpecker
// with storage type local:
//
//	{woodpecker.storage.rootPath}/{minio.rootPath}/{logId}/{segmentId}/{data.log | write.lock | write.fence}
//
// minio.rootPath is woodpecker's, which in Milvus is "{minio.rootPath}/wp"; the
// bucket is not part of the path.
type LocalLog struct {
	ID      int64
	Files   int64 // files of the layout
	Bytes   int64
	Foreign []string // other files, as paths below the local root
}

var localFiles = []string{"data.log", "write.lock", "write.fence"}

// LocalRoot gives access to the directory of all logs and to nothing outside of
// it: no symbolic link leads out.
type LocalRoot struct {
	root *os.Root
	dir  string
}

// OpenLocal opens {storagePath}/{root}. The error wraps fs.ErrNotExist when the
// directory does not exist.
func OpenLocal(storagePath, root string) (*LocalRoot, error) {
	dir := filepath.Join(storagePath, filepath.FromSlash(root))
	opened, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &LocalRoot{root: opened, dir: dir}, nil
}

// Dir is the path of the directory.
func (l *LocalRoot) Dir() string { return l.dir }

// Close closes it.
func (l *LocalRoot) Close() error { return l.root.Close() }

// Logs walks all log directories in the order of their ids. Names directly below
// the root that are no log's are returned as foreign.
func (l *LocalRoot) Logs(ctx context.Context) (logs []LocalLog, foreign []string, err error) {
	entries, err := fs.ReadDir(l.root.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		id, ok := parseLogID(entry.Name())
		if !ok || !entry.IsDir() {
			foreign = append(foreign, entry.Name())
			continue
		}
		log, err := l.walk(ctx, id, nil)
		if err != nil {
			return nil, nil, err
		}
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b LocalLog) int { return cmp.Compare(a.ID, b.ID) })
	return logs, foreign, nil
}

// Remove deletes the files of one log and the directories that are empty then.
// What does not match the layout is left and returned as foreign.
func (l *LocalRoot) Remove(ctx context.Context, id int64) (LocalLog, error) {
	removed, err := l.walk(ctx, id, l.root.Remove)
	if err != nil {
		return removed, err
	}
	return removed, l.removeEmpty(strconv.FormatInt(id, 10))
}

// walk visits each file of the layout.
func (l *LocalRoot) walk(ctx context.Context, id int64, visit func(name string) error) (LocalLog, error) {
	log := LocalLog{ID: id}
	err := fs.WalkDir(l.root.FS(), strconv.FormatInt(id, 10), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular() || !isLocalFile(name):
			log.Foreign = append(log.Foreign, name)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if visit != nil {
			if err := visit(name); err != nil {
				return err
			}
		}
		log.Files++
		log.Bytes += info.Size()
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // gone already
	}
	return log, err
}

// removeEmpty removes the directories of a log that hold nothing, the deepest first.
func (l *LocalRoot) removeEmpty(dir string) error {
	entries, err := fs.ReadDir(l.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := l.removeEmpty(path.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if entries, err = fs.ReadDir(l.root.FS(), dir); err != nil || len(entries) > 0 {
		return err
	}
	if err := l.root.Remove(dir); err != nil {
		return fmt.Errorf("remove the empty directory: %w", err)
	}
	return nil
}

// isLocalFile reads "{logId}/{segmentId}/{file}".
func isLocalFile(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return false
	}
	_, okLog := parseLogID(parts[0])
	_, okSegment := parseNumber(parts[1])
	return okLog && okSegment && slices.Contains(localFiles, parts[2])
}
