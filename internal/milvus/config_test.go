package milvus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What Milvus makes of files, environment and etcd: each case is shaped like a
// deployment that exists.
func TestResolveConfig(t *testing.T) {
	file := func(name, text string) ConfigFile { return ConfigFile{Name: name, From: name, Text: text} }
	env := func(name, value string) ConfigVariable { return ConfigVariable{Name: name, Value: value} }
	override := func(name, value string) Override {
		return Override{Key: "by-dev/config/" + name, Name: formatKey(name), Value: value}
	}
	tests := []struct {
		name    string
		sources ConfigSources
		want    map[string]string // key: "value" or "value < source"
		note    string            // part of one of the notes
		lost    string            // part of what weaker sources say of mq.type
	}{
		{
			name: "nothing given is what the image's milvus.yaml says",
			want: map[string]string{
				"etcd.endpoints": "localhost:2379 < milvus's default", "etcd.rootPath": "by-dev", "etcd.metaSubPath": "meta",
				"minio.address": "localhost < milvus.yaml of the image", "minio.bucketName": "a-bucket", "minio.rootPath": "files < milvus.yaml of the image",
				"mq.type": "default", "woodpecker.meta.prefix": "woodpecker",
			},
		},
		{
			name:    "the image's own file decides, so what it lacks is the code's default",
			sources: ConfigSources{Files: []ConfigFile{file("milvus.yaml", "etcd:\n  rootPath: by-dev\n")}},
			want:    map[string]string{"minio.rootPath": " < milvus's default", "minio.address": "", "etcd.rootPath": "by-dev < milvus.yaml"},
		},
		{
			name: "compose: the environment names the services",
			sources: ConfigSources{Env: []ConfigVariable{
				env("ETCD_ENDPOINTS", "etcd:2379"), env("MINIO_ADDRESS", "minio:9000"), env("MQ_TYPE", "woodpecker"),
			}},
			want: map[string]string{
				"etcd.endpoints": "etcd:2379 < environment ETCD_ENDPOINTS", "minio.address": "minio:9000", "mq.type": "woodpecker < environment MQ_TYPE",
			},
		},
		{
			name: "user.yaml beats default.yaml, key by key",
			sources: ConfigSources{Files: []ConfigFile{
				file("default.yaml", "minio:\n  bucketName: milvus-bucket\n  rootPath: file\n"),
				file("user.yaml", "minio:\n  rootPath: other\n"),
			}},
			want: map[string]string{"minio.bucketName": "milvus-bucket < default.yaml", "minio.rootPath": "other < user.yaml"},
		},
		{
			name: "the order in which files are given does not matter",
			sources: ConfigSources{Files: []ConfigFile{
				file("user.yaml", "mq:\n  type: woodpecker\n"), file("milvus.yaml", "mq:\n  type: default\n"),
				file("_test.yaml", "mq:\n  type: kafka\n"), file("default.yaml", "mq:\n  type: pulsar\n"),
			}},
			want: map[string]string{"mq.type": "woodpecker < user.yaml"},
			lost: "default.yaml says pulsar",
		},
		{
			name: "F13: the chart of a standalone writes mq twice, the last one counts",
			sources: ConfigSources{Files: []ConfigFile{file("default.yaml",
				"mq:\n  type: pulsar\nmessageQueue: pulsar\npulsar:\n  address: r-pulsarv3-proxy\nmq:\n  type: woodpecker\nmessageQueue: woodpecker\n")}},
			want: map[string]string{"mq.type": "woodpecker < default.yaml"},
			note: "mq is given more than once, the last one (line 6) counts",
		},
		{
			name:    "a second mq without a type hides the first one's",
			sources: ConfigSources{Files: []ConfigFile{file("default.yaml", "mq:\n  type: pulsar\nmq:\n  enablePursuitMode: true\n")}},
			want:    map[string]string{"mq.type": "default < milvus's default"},
			note:    "mq is given more than once, the last one (line 3) counts",
		},
		{
			name:    "F14: a service link is no port",
			sources: ConfigSources{Env: []ConfigVariable{env("MINIO_PORT", "tcp://10.0.0.7:9000"), env("MINIO_ADDRESS", "minio")}},
			want:    map[string]string{"minio.port": "9000 < milvus's default"},
			note:    "MINIO_PORT=tcp://10.0.0.7:9000 is a service link",
		},
		{
			name:    "service links of services that milvus has no setting for are silent",
			sources: ConfigSources{Env: []ConfigVariable{env("MY_RELEASE_ETCD_PORT", "tcp://10.0.0.9:2379")}},
			want:    map[string]string{"etcd.endpoints": "localhost:2379"},
		},
		{
			name: "etcd beats environment and files: the pin decides",
			sources: ConfigSources{
				Overrides: Overrides{override("mqtype", "pulsar")},
				Env:       []ConfigVariable{env("MQ_TYPE", "kafka")},
				Files:     []ConfigFile{file("user.yaml", "mq:\n  type: woodpecker\n")},
			},
			want: map[string]string{"mq.type": "pulsar < etcd by-dev/config/mqtype"},
			lost: "user.yaml says woodpecker",
		},
		{
			name:    "F03: default stays default, it is not guessed",
			sources: ConfigSources{Files: []ConfigFile{file("milvus.yaml", "mq:\n  type: default\nrocksmq:\n  path: /var/lib/milvus/rdb_data\n")}},
			want:    map[string]string{"mq.type": "default < milvus.yaml"},
		},
		{
			name:    "etcd cannot say how etcd is reached",
			sources: ConfigSources{Overrides: Overrides{override("etcd/rootPath", "elsewhere")}},
			want:    map[string]string{"etcd.rootPath": "by-dev"},
		},
		{
			name:    "etcd can move the woodpecker storage",
			sources: ConfigSources{Overrides: Overrides{override("woodpecker/storage/type", "service")}},
			want:    map[string]string{"woodpecker.storage.type": "service < etcd by-dev/config/woodpecker/storage/type"},
		},
		{
			name:    "endpoints as a list",
			sources: ConfigSources{Files: []ConfigFile{file("default.yaml", "etcd:\n  endpoints:\n    - my-release-etcd-0:2379\n    - my-release-etcd-1:2379\n")}},
			want:    map[string]string{"etcd.endpoints": "my-release-etcd-0:2379,my-release-etcd-1:2379"},
		},
		{
			name:    "endpoints as one text",
			sources: ConfigSources{Files: []ConfigFile{file("milvus.yaml", "etcd:\n  endpoints: \"a:2379, b:2379\"\n")}},
			want:    map[string]string{"etcd.endpoints": "a:2379, b:2379"},
		},
		{
			name:    "elements that are maps are left out of a list",
			sources: ConfigSources{Files: []ConfigFile{file("default.yaml", "etcd:\n  endpoints:\n    - a:2379\n    - {host: b}\n")}},
			want:    map[string]string{"etcd.endpoints": "a:2379"},
		},
		{
			name: "a key without a value is empty and hides weaker sources",
			sources: ConfigSources{Files: []ConfigFile{
				file("default.yaml", "minio:\n  rootPath: file\n"), file("user.yaml", "minio:\n  rootPath:\n"),
			}},
			want: map[string]string{"minio.rootPath": " < user.yaml"},
		},
		{
			name:    "keys are compared without case, dots and underscores",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "Minio:\n  bucket_name: b\nmqType: kafka\n")}},
			want:    map[string]string{"minio.bucketName": "b", "mq.type": "kafka"},
		},
		{
			name: "every spelling of a variable works",
			sources: ConfigSources{Env: []ConfigVariable{
				env("etcd.rootPath", "r"), env("MINIO_BUCKET_NAME", "b"), env("milvus.minio.rootPath", "p"), env("MILVUS_CONF_MINIO_REGION", "eu"),
			}},
			want: map[string]string{"etcd.rootPath": "r", "minio.bucketName": "b", "minio.rootPath": "p", "minio.region": "eu"},
		},
		{
			name:    "the old credential variables mean nothing in 2.6",
			sources: ConfigSources{Env: []ConfigVariable{env("MINIO_ACCESS_KEY", "old"), env("MINIO_SECRET_KEY", "old")}},
			want:    map[string]string{"minio.accessKeyID": "******** < milvus's default"},
		},
		{
			name: "the operator hands credentials over as environment",
			sources: ConfigSources{
				Files: []ConfigFile{file("user.yaml", "etcd:\n  rootPath: my-cr\nminio:\n  bucketName: my-cr\n  accessKeyID: minioadmin\n")},
				Env:   []ConfigVariable{{Name: "MINIO_ACCESS_KEY_ID", Value: "real", From: "secret my-cr-minio/accesskey", Secret: true}},
			},
			want: map[string]string{
				"minio.accessKeyID": "******** < environment MINIO_ACCESS_KEY_ID (secret my-cr-minio/accesskey)", "etcd.rootPath": "my-cr",
			},
		},
		{
			name:    "numbers and switches become text",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "minio:\n  port: 9001\n  useSSL: true\n  useIAM: no\n  useVirtualHost: \"on\"\n")}},
			want:    map[string]string{"minio.port": "9001", "minio.useSSL": "true", "minio.useIAM": "false", "minio.useVirtualHost": "on"},
		},
		{
			name:    "anchors and merges are followed",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "base: &b\n  bucketName: b\n  rootPath: p\nminio:\n  <<: *b\n  rootPath: q\n")}},
			want:    map[string]string{"minio.bucketName": "b", "minio.rootPath": "q"},
		},
		{
			name:    "a file of comments says nothing",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "# extra settings go here\n#   proxy: {}\n")}},
			want:    map[string]string{"mq.type": "default < milvus's default"},
		},
		{
			name:    "windows line ends and a byte order mark",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "\ufeffmq:\r\n  type: woodpecker\r\n")}},
			want:    map[string]string{"mq.type": "woodpecker"},
		},
		{
			name:    "two spellings of one setting in one file are named",
			sources: ConfigSources{Files: []ConfigFile{file("user.yaml", "mq:\n  type: woodpecker\nmqType: pulsar\n")}},
			note:    "are the same setting to milvus",
		},
		{
			name: "an external store with TLS",
			sources: ConfigSources{Files: []ConfigFile{file("default.yaml",
				"minio:\n  address: s3.eu-central-1.amazonaws.com\n  port: 443\n  useSSL: true\n  bucketName: prod\n  rootPath: milvus/files\n  region: eu-central-1\n")}},
			want: map[string]string{"minio.address": "s3.eu-central-1.amazonaws.com", "minio.port": "443", "minio.useSSL": "true"},
		},
		{
			name: "the last of two variables for one setting counts",
			sources: ConfigSources{Env: []ConfigVariable{
				env("MQ_TYPE", "pulsar"), env("mq.type", "woodpecker"),
			}},
			want: map[string]string{"mq.type": "woodpecker < environment mq.type"},
			lost: "environment MQ_TYPE says pulsar",
		},
		{
			name:    "a variable without a value hides the files",
			sources: ConfigSources{Env: []ConfigVariable{env("MINIO_ROOTPATH", "")}, Files: []ConfigFile{file("user.yaml", "minio: {rootPath: p}\n")}},
			want:    map[string]string{"minio.rootPath": " < environment MINIO_ROOTPATH"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, err := ResolveConfig(test.sources)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for key, want := range test.want {
				s := config.Get(key)
				got[key] = s.Shown()
				if strings.Contains(want, " < ") {
					got[key] += " < " + s.Source
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" && len(test.want) > 0 {
				t.Errorf("settings differ (-want +got):\n%s", diff)
			}
			if notes := strings.Join(config.Notes, "\n"); (test.note == "") != (notes == "") || !strings.Contains(notes, test.note) {
				t.Errorf("notes are %q, want one with %q", notes, test.note)
			}
			if lost := strings.Join(config.Get(walKey).Lost, "\n"); !strings.Contains(lost, test.lost) {
				t.Errorf("of mq.type weaker sources say %q, want %q", lost, test.lost)
			}
		})
	}
}

func TestConfigDerivesWhatMilvusDerives(t *testing.T) {
	tests := []struct {
		name, yaml                string
		endpoints, endpoint, root string
		wal                       string // empty: not decided
	}{
		{
			name: "port is added to an address without one", yaml: "minio: {address: my-release-minio, port: 9000, rootPath: file}\n",
			endpoints: "localhost:2379", endpoint: "my-release-minio:9000", root: "file",
		},
		{
			name: "port is not added to an address with one", yaml: "minio: {address: 'minio:9000', port: 1}\n",
			endpoints: "localhost:2379", endpoint: "minio:9000", root: "files",
		},
		{
			name: "the root is cleaned, its leading slash goes", yaml: "minio: {rootPath: /a//b/}\n",
			endpoints: "localhost:2379", endpoint: "localhost:9000", root: "a/b",
		},
		{
			name: "an empty root stays empty", yaml: "minio: {rootPath: ''}\n",
			endpoints: "localhost:2379", endpoint: "localhost:9000", root: "",
		},
		{
			name: "endpoints lose their blanks", yaml: "etcd: {endpoints: 'a:1, b:2'}\nmq: {type: kafka}\n",
			endpoints: "a:1|b:2", endpoint: "localhost:9000", root: "files", wal: "kafka",
		},
		{
			name: "natsmq and default decide nothing here", yaml: "mq: {type: natsmq}\n",
			endpoints: "localhost:2379", endpoint: "localhost:9000", root: "files",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, err := ResolveConfig(ConfigSources{Files: []ConfigFile{{Name: "user.yaml", From: "user.yaml", Text: test.yaml}}})
			if err != nil {
				t.Fatal(err)
			}
			wal := ""
			if w, decided := config.WALType(); decided {
				wal = w.String()
			}
			got := []string{strings.Join(config.EtcdEndpoints(), "|"), config.ObjectEndpoint(), config.ObjectRoot(), wal}
			if diff := cmp.Diff([]string{test.endpoints, test.endpoint, test.root, test.wal}, got); diff != "" {
				t.Errorf("endpoints, endpoint, root, wal differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigFilesThatAreRefused(t *testing.T) {
	deep := strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40)
	tests := []struct{ name, file, text, want string }{
		{"a name that milvus does not read", "values.yaml", "a: 1\n", "milvus reads no file of this name"},
		{"a list at the top", "user.yaml", "- a\n", "line 1: want keys and values"},
		{"no YAML", "user.yaml", "mq:\n\ttype: x\n", "line 2"},
		{"too deep", "user.yaml", deep, "nested more than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ResolveConfig(ConfigSources{Files: []ConfigFile{{Name: test.file, From: test.file, Text: test.text}}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestSetWALTypeEditsOnePlace(t *testing.T) {
	tests := []struct{ name, before, after string }{
		{"a plain value, comments and order kept", "# top\nmq:\n  type: pulsar # why\n  x: 1\nz: 2\n", "# top\nmq:\n  type: woodpecker # why\n  x: 1\nz: 2\n"},
		{"a quoted value", "mq:\n  type: \"pulsar\"\n", "mq:\n  type: woodpecker\n"},
		{"the last of two", "mq:\n  type: pulsar\na: b\nmq:\n  type: rocksmq\n", "mq:\n  type: pulsar\na: b\nmq:\n  type: woodpecker\n"},
		{"the last of two, which has no type", "mq:\n  type: pulsar\nmq:\n    enable: true\n", "mq:\n  type: pulsar\nmq:\n    type: woodpecker\n    enable: true\n"},
		{"a flow mapping", "mq: {type: pulsar, x: 1} # c\n", "mq: {type: woodpecker, x: 1} # c\n"},
		{"a dotted key", "mq.type: pulsar\n", "mq.type: woodpecker\n"},
		{"another case", "MQ:\n  Type: pulsar\n", "MQ:\n  Type: woodpecker\n"},
		{"a key without a value", "mq:\n  type:\n  x: 1\n", "mq:\n  type: woodpecker\n  x: 1\n"},
		{"a key without a value before a comment", "mq:\n  type: # pulsar: no\nx: 1\n", "mq:\n  type: woodpecker # pulsar: no\nx: 1\n"},
		{"an mq without anything", "a: 1\nmq:\nb: 2\n", "a: 1\nmq:\n  type: woodpecker\nb: 2\n"},
		{"a file without mq", "a: 1\n", "a: 1\nmq:\n  type: woodpecker\n"},
		{"a file without an end of line", "a: 1", "a: 1\nmq:\n  type: woodpecker\n"},
		{"an empty file", "", "mq:\n  type: woodpecker\n"},
		{"a file of comments", "# nothing yet\n", "# nothing yet\nmq:\n  type: woodpecker\n"},
		{"windows line ends", "mq:\r\n  type: pulsar\r\n", "mq:\r\n  type: woodpecker\r\n"},
		{"already so", "mq:\n  type: 'woodpecker'\n", "mq:\n  type: 'woodpecker'\n"},
		{"after wide characters", "mq: {ü: 1, type: pulsar}\n", "mq: {ü: 1, type: woodpecker}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := SetWALType(test.before, Woodpecker)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, got); diff != "" {
				t.Errorf("text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetWALTypeRefusesWhatItCannotEditInOnePlace(t *testing.T) {
	tests := []struct{ name, text string }{
		{"two spellings", "mq:\n  type: pulsar\nmqType: kafka\n"},
		{"an alias", "a: &x\n  type: pulsar\nmq: *x\n"},
		{"an anchor that others use", "mq:\n  type: &t pulsar\nother: *t\n"},
		{"a block of text", "mq:\n  type: |\n    pulsar\n"},
		{"mq is a text", "mq: pulsar\n"},
		{"one flow mapping", "{a: 1}\n"},
		{"two documents", "a: 1\n---\nb: 2\n"},
		{"no YAML", "mq: [\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := SetWALType(test.text, Woodpecker); err == nil {
				t.Errorf("edited to:\n%s", got)
			}
		})
	}
}
