package seed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// scratchRoot is where service mode writes for a root that it refuses.
const scratchRoot = "runbook-lab-scratch/wp"

// clientRoot is the root that the woodpecker client is given while seeding. Its
// service mode refuses roots that are not canonical, though Milvus's settings
// can spell them and other modes write them.
func (s *Seeder) clientRoot() string {
	if s.target.StorageType != StorageService || s.target.WALRoot() == s.target.CleanWALRoot() {
		return s.target.WALRoot()
	}
	return scratchRoot
}

// moveToVerbatimRoot moves what was written at the scratch root to where a
// client that accepts the target's root would have written it.
func (s *Seeder) moveToVerbatimRoot(ctx context.Context) error {
	if s.clientRoot() != scratchRoot {
		return nil
	}
	verbatim := s.target.WALRoot() + "/"
	s.say("woodpecker refuses the root %q in service mode: writing aside and moving", s.target.WALRoot())
	err := s.moveObjects(ctx, scratchRoot+"/", func(key string) string { return verbatim + strings.TrimPrefix(key, scratchRoot+"/") })
	if err != nil {
		return err
	}
	for _, node := range s.lab.Nodes {
		bucket := filepath.Join(node.DataDir, s.target.Bucket)
		if err := moveLogs(filepath.Join(bucket, scratchRoot), filepath.Join(bucket, s.target.CleanWALRoot())); err != nil {
			return err
		}
	}
	return nil
}

// moveLogs moves log directories. File systems know no empty path elements, so
// an instance with the canonical root shares the directory: what it has stays.
func moveLogs(from, to string) error {
	logs, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, log := range logs {
		if target := filepath.Join(to, log.Name()); !exists(target) {
			if err := os.Rename(filepath.Join(from, log.Name()), target); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(filepath.Dir(from))
}

// clientOwner is the directory on a node's disk that the client writes to.
func (s *Seeder) clientOwner() string { return path.Join(s.target.Bucket, s.clientRoot()) }
