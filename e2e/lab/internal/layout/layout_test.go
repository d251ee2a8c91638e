package layout

import "testing"

func TestParseObject(t *testing.T) {
	tests := []struct {
		key  string
		want Object
		ok   bool
	}{
		{"files/wp/7/0/m_0.blk", Object{"files/wp", 7, 0}, true},
		{"files/wp/7/12/3.blk", Object{"files/wp", 7, 12}, true},
		{"files/wp/7/0/footer.blk", Object{"files/wp", 7, 0}, true},
		{"files/wp/7/0/write.lock", Object{"files/wp", 7, 0}, true},
		{"files//wp/7/0/0.blk", Object{"files//wp", 7, 0}, true},
		{"/wp/7/0/0.blk", Object{"/wp", 7, 0}, true},
		{"7/0/0.blk", Object{"", 7, 0}, true},
		{"files/wp/7/", Object{}, false},
		{"files/wp/7/0/", Object{}, false},
		{"files/wp/abc/0/1.blk", Object{}, false},
		{"files/wp/7/0/m_0.blk.bak", Object{}, false},
		{"files/wp/7/notes.txt", Object{}, false},
		{"files/wp/99999999999999999999/0/1.blk", Object{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			got, ok := ParseObject(tt.key)
			if got != tt.want || ok != tt.ok {
				t.Errorf("got %+v %v, want %+v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestParseNodeFile(t *testing.T) {
	got, ok := ParseNodeFile("a-bucket/files/wp/7/0/data.log")
	if want := (NodeFile{"a-bucket/files/wp", 7, 0, "data.log"}); !ok || got != want {
		t.Errorf("got %+v %v, want %+v", got, ok, want)
	}
	for _, path := range []string{".deleted/a-bucket/files/wp/7.json", "lifecycle.json", "a-bucket/7/data.log"} {
		if got, ok := ParseNodeFile(path); ok {
			t.Errorf("%s: taken for a log's file: %+v", path, got)
		}
	}
}

func TestInstanceAddresses(t *testing.T) {
	tests := []struct {
		instance                       Instance
		etcdPrefix, walRoot, nodeOwner string
	}{
		{Default(), "by-dev/woodpecker", "files/wp", "a-bucket/files/wp"},
		{Instance{"by-dev", "/woodpecker", "b", "files"}, "woodpecker", "files/wp", "b/files/wp"},
		{Instance{"a/b", "wp", "b", "files/"}, "a/b/wp", "files//wp", "b/files/wp"},
		{Instance{"by-dev", "woodpecker", "b", ""}, "by-dev/woodpecker", "/wp", "b/wp"},
	}
	for _, tt := range tests {
		i := tt.instance
		if got := i.EtcdPrefix(); got != tt.etcdPrefix {
			t.Errorf("%+v: etcd prefix %q, want %q", i, got, tt.etcdPrefix)
		}
		if got := i.WALRoot(); got != tt.walRoot {
			t.Errorf("%+v: WAL root %q, want %q", i, got, tt.walRoot)
		}
		if got := i.NodeOwner(); got != tt.nodeOwner {
			t.Errorf("%+v: node directory %q, want %q", i, got, tt.nodeOwner)
		}
	}
}
