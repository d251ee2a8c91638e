package snapshot

import (
	"slices"
	"testing"
)

func example() *Snapshot {
	return &Snapshot{
		EtcdRevision: 5,
		Etcd:         map[string]Key{"by-dev/a": {Value: "31", Mod: 3}, "by-dev/b": {Value: "32", Mod: 4}},
		Objects:      map[string][]Object{"bucket": {{Key: "k", Size: 1, ETag: "e", VersionID: "v1", Latest: true}}},
		Files:        map[string]File{"1/a/data.log": {Size: 1, SHA256: "s"}},
	}
}

func TestDiffNamesEachKindOfChange(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Snapshot)
		want   string
	}{
		{"nothing", func(*Snapshot) {}, ""},
		{"revision", func(s *Snapshot) { s.EtcdRevision++ }, "changed etcd-revision"},
		{"key rewritten with the same value", func(s *Snapshot) { s.Etcd["by-dev/a"] = Key{Value: "31", Mod: 9} }, "changed etcd/by-dev/a"},
		{"key gone", func(s *Snapshot) { delete(s.Etcd, "by-dev/b") }, "removed etcd/by-dev/b"},
		{"object rewritten", func(s *Snapshot) { s.Objects["bucket"][0].ETag = "f" }, "changed objects/bucket/k"},
		{"delete marker", func(s *Snapshot) {
			s.Objects["bucket"] = append(s.Objects["bucket"], Object{Key: "k", VersionID: "v2", DeleteMarker: true})
		}, "added objects/bucket/k"},
		{"bucket", func(s *Snapshot) { s.Objects["other"] = nil }, "added objects/other"},
		{"file", func(s *Snapshot) { s.Files["1/a/data.log"] = File{Size: 1, SHA256: "t"} }, "changed nodes/1/a/data.log"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after := example()
			tt.change(after)
			var got []string
			for _, c := range Diff(example(), after, nil) {
				got = append(got, c.What+" "+c.Name)
			}
			want := []string{tt.want}
			if tt.want == "" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestDiffIgnoresGlobs(t *testing.T) {
	after := example()
	after.EtcdRevision = 9
	after.Etcd["by-dev/woodpecker/logs/x/segments/1"] = Key{Value: "33", Mod: 9}
	if left := Diff(example(), after, []string{"etcd-revision", "etcd/by-dev/woodpecker/*"}); len(left) > 0 {
		t.Errorf("not ignored: %v", left)
	}
	if left := Diff(example(), after, []string{"etcd/*"}); len(left) != 1 || left[0].Name != "etcd-revision" {
		t.Errorf("got %v, want the revision alone", left)
	}
}
