// Package snapshot records everything that a lab's tiers hold, byte for byte,
// and compares two such records. It is how a test proves that nothing else
// changed.
package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"

	"runbook/e2e/lab/internal/access"
	"runbook/e2e/lab/internal/state"
	"runbook/e2e/lab/internal/survey"
)

// Snapshot is everything, by tier.
type Snapshot struct {
	EtcdRevision int64               `json:"etcdRevision"`
	Etcd         map[string]Key      `json:"etcd"`    // by key
	Objects      map[string][]Object `json:"objects"` // by bucket
	Files        map[string]File     `json:"files"`   // by node and path
}

// Key is the value of one key of etcd.
type Key struct {
	Value string `json:"value"` // hexadecimal
	Mod   int64  `json:"modRevision"`
	Lease int64  `json:"lease,omitempty"`
}

// Object is one version of one object.
type Object struct {
	Key          string `json:"key"`
	Size         int64  `json:"size"`
	ETag         string `json:"etag"`
	VersionID    string `json:"versionId,omitempty"`
	DeleteMarker bool   `json:"deleteMarker,omitempty"`
	Latest       bool   `json:"latest"`
}

// FromInfo is what a snapshot keeps of an object.
func FromInfo(o minio.ObjectInfo) Object {
	return Object{Key: o.Key, Size: o.Size, ETag: o.ETag, VersionID: o.VersionID, DeleteMarker: o.IsDeleteMarker, Latest: o.IsLatest}
}

// Kind names what the version is.
func (o Object) Kind() string {
	switch {
	case o.DeleteMarker:
		return "delete-marker"
	case o.Latest:
		return "latest"
	default:
		return "older"
	}
}

// File is one file on a disk.
type File struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Take records a lab.
func Take(ctx context.Context, lab *state.Lab) (*Snapshot, error) {
	s := &Snapshot{Etcd: map[string]Key{}, Objects: map[string][]Object{}, Files: map[string]File{}}
	if err := s.takeEtcd(ctx, lab); err != nil {
		return nil, err
	}
	if err := s.takeObjects(ctx, lab); err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	for name, dir := range Disks(lab) {
		if err := s.takeFiles(name, dir); err != nil {
			return nil, fmt.Errorf("disk of %s: %w", name, err)
		}
	}
	return s, nil
}

// Disks are the data directories of a lab by name: the nodes' numbers, and
// local for local storage where there is any.
func Disks(lab *state.Lab) map[string]string {
	disks := map[string]string{}
	for _, n := range lab.Nodes {
		disks[strconv.Itoa(n.N)] = n.DataDir
	}
	if _, err := os.Stat(lab.LocalDir()); err == nil {
		disks["local"] = lab.LocalDir()
	}
	return disks
}

func (s *Snapshot) takeEtcd(ctx context.Context, lab *state.Lab) error {
	client, err := access.Etcd(ctx, lab)
	if err != nil {
		return err
	}
	defer client.Close()
	s.EtcdRevision, err = survey.EachKey(ctx, client, func(kv survey.Key) error {
		s.Etcd[string(kv.Key)] = Key{Value: hex.EncodeToString(kv.Value), Mod: kv.Mod, Lease: kv.Lease}
		return nil
	})
	return err
}

func (s *Snapshot) takeObjects(ctx context.Context, lab *state.Lab) error {
	client, err := access.Objects(lab)
	if err != nil {
		return err
	}
	buckets, err := client.ListBuckets(ctx)
	if err != nil {
		return err
	}
	for _, b := range buckets {
		s.Objects[b.Name] = []Object{}
		for o := range client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
			if o.Err != nil {
				return fmt.Errorf("bucket %s: %w", b.Name, o.Err)
			}
			s.Objects[b.Name] = append(s.Objects[b.Name], FromInfo(o))
		}
	}
	return nil
}

func (s *Snapshot) takeFiles(disk, dir string) error {
	return survey.EachFile(dir, func(path string, size int64) error {
		sum, err := hashFile(filepath.Join(dir, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // reclaimed meanwhile
		}
		if err != nil {
			return err
		}
		s.Files[disk+"/"+path] = File{Size: size, SHA256: sum}
		return nil
	})
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Write writes the snapshot to path.
func (s *Snapshot) Write(path string) error {
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}

// Read reads a snapshot.
func Read(path string) (*Snapshot, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s Snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// Change is one difference. Name is etcd/KEY, objects/BUCKET/KEY,
// nodes/N/PATH, or etcd-revision.
type Change struct {
	What   string `json:"what"` // added, removed or changed
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Diff lists what differs between a and b, except names that match one of the
// globs, where * stands for any characters.
func Diff(a, b *Snapshot, ignore []string) []Change {
	before, after := a.entries(), b.entries()
	names := maps.Clone(before)
	maps.Copy(names, after)
	changes := []Change{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := before[name]
		is, has := after[name]
		if (had && has && was == is) || matchesAny(ignore, displayName(name)) {
			continue
		}
		what := "changed"
		switch {
		case !had:
			what = "added"
		case !has:
			what = "removed"
		}
		changes = append(changes, Change{What: what, Name: displayName(name), Before: was, After: is})
	}
	return changes
}

const versionMark = "\x00"

// displayName drops the version id that tells an object's versions apart.
func displayName(entry string) string {
	name, _, _ := strings.Cut(entry, versionMark)
	return name
}

func (s *Snapshot) entries() map[string]string {
	out := map[string]string{"etcd-revision": strconv.FormatInt(s.EtcdRevision, 10)}
	for key, v := range s.Etcd {
		out["etcd/"+key] = fmt.Sprintf("value %s, mod revision %d, lease %x", v.Value, v.Mod, v.Lease)
	}
	for bucket, objects := range s.Objects {
		out["objects/"+bucket] = "bucket"
		for _, o := range objects {
			out["objects/"+bucket+"/"+o.Key+versionMark+o.VersionID] = strings.TrimSpace(fmt.Sprintf("%s, %d bytes, etag %s, %s", o.Kind(), o.Size, o.ETag, o.VersionID))
		}
	}
	for path, f := range s.Files {
		out["nodes/"+path] = fmt.Sprintf("%d bytes, sha256 %s", f.Size, f.SHA256)
	}
	return out
}

func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		parts := strings.Split(glob, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(name)
	})
}
