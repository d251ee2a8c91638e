package journal

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runbook/internal/event"
)

// mount makes a file system of its own at dir, which needs root.
func mount(t *testing.T, dir, options string, flags uintptr) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func TestAReadOnlyStateDirectoryIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	mount(t, dir, "size=1m", syscall.MS_RDONLY)
	wantRefused(t, dir, "journal.read-only")
}

func TestAFullDiskIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	mount(t, dir, "size=64k", 0)
	wantRefused(t, dir, "journal.no-space")
	if left, err := os.ReadDir(filepath.Join(dir, "runs")); err != nil || len(left) != 0 {
		t.Errorf("a refused run leaves %v, %v", left, err)
	}
}

func TestARunWhoseDiskFillsUpStopsAtTheNextBoundary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	mount(t, dir, "size=2m", 0)
	r := newRun(t, dir)
	long := strings.Repeat("x", 100_000)
	for range 40 {
		if err := r.Append(event.Event{Event: event.Note, Text: long}, false); err != nil {
			t.Fatalf("an event that is no boundary reports: %v", err)
		}
	}
	if err := r.Append(event.Event{Event: event.StepStarted}, true); codeOf(err) != "journal.no-space" {
		t.Fatalf("the boundary reports: %v", err)
	}
	image, err := r.BeforeImage("wal")
	if err == nil {
		noise := make([]byte, 3<<20)
		for i := range noise {
			noise[i] = byte(i * i >> 7 * i)
		}
		if _, err = image.Write(noise); err == nil {
			err = image.Commit()
		}
	}
	if codeOf(err) != "journal.no-space" {
		t.Errorf("the before-image reports: %v", err)
	}
	if images, _ := r.Past().Images(); len(images) != 0 {
		t.Errorf("a half-written before-image is listed: %+v", images[0])
	}
}
