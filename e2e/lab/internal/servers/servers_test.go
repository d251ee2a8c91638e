package servers

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestKeysSurviveTheDisk(t *testing.T) {
	for _, key := range []string{"a", "a/b", "a//b", "a///b", "/a", "//a", "a/", "a//", "files//wp/7/0/0.blk", "/wp/7/"} {
		disk := toDisk(key)
		if strings.Contains(disk, "//") || strings.HasPrefix(disk, "/") {
			t.Errorf("%q: a file system would fold %q", key, disk)
		}
		if got := fromDisk(disk); got != key {
			t.Errorf("%q came back as %q", key, got)
		}
	}
}

func TestKeysSortOnDiskAsInS3(t *testing.T) {
	keys := []string{"files//wp/1", "files/a", "files/wp/1", "/wp/1", "0/1"}
	bySpec, byDisk := slices.Sorted(slices.Values(keys)), slices.Clone(keys)
	slices.SortFunc(byDisk, func(a, b string) int { return strings.Compare(toDisk(a), toDisk(b)) })
	if !slices.Equal(bySpec, byDisk) {
		t.Errorf("on disk %q, in S3 %q", byDisk, bySpec)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	_, err = ChoosePorts(PortChoice{Auto: true, Etcd: taken}, 1)
	if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(taken)) || !strings.Contains(err.Error(), "--ports auto") {
		t.Errorf("got %v, want the port and a hint", err)
	}
}

func TestAutoPortsAreAllDifferent(t *testing.T) {
	p, err := ChoosePorts(PortChoice{Auto: true}, 3)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(p.Etcd, p.EtcdPeer, p.NodeInner[:], p.Gossip[:], []int{p.Objects, p.Node, p.Control})
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("a port was chosen twice: %v", all)
	}
}
