package instance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runbook/internal/fault"
	"runbook/internal/labtest"
	"runbook/internal/milvus"
	"runbook/internal/secret"
)

// What the plan does not give comes from Milvus's files and environment, and what
// etcd overrides from etcd.
func TestSettingsComeFromMilvusConfiguration(t *testing.T) {
	lab := labtest.Start(t)
	client := lab.EtcdClient(t)
	for key, value := range map[string]string{
		milvus.PinKey("from-file"):                 "pulsar",
		"from-file/config/woodpecker/storage/type": "minio",
		"from-file/config/etcd/rootPath":           "nowhere",
	} {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	defaults := write("default.yaml", "etcd:\n  endpoints: ["+lab.Etcd.Endpoints[0]+"]\n  rootPath: from-file\n"+
		"minio:\n  address: my-minio\n  port: 9001\n  bucketName: b\n  rootPath: /a//b/\n  secretAccessKey: of-the-file\n  useSSL: false\n"+
		"mq:\n  type: pulsar\nmq:\n  type: kafka\nwoodpecker:\n  meta:\n    prefix: wp2\n  storage:\n    type: service\n")
	user := write("user.yaml", "minio:\n  bucketName: of-user\n")

	settings := Settings{
		Etcd:          Etcd{RootPath: "by-dev", MetaSubPath: "meta"},
		ObjectStorage: ObjectStorage{Bucket: "a-bucket", RootPath: "files", Region: "of-the-plan", AccessKeyID: secret.Value{Literal: "planned"}},
		WAL:           WAL{Type: "woodpecker", StorageType: "service", MetaPrefix: "auto"},
		MilvusConfig:  &MilvusConfig{Files: []string{user, defaults}, Env: map[string]string{"MINIO_PORT": "tcp://10.0.0.7:9000", "MINIO_REGION": "of-env"}},
	}
	settings.SetGiven([]string{"objectStorage", "objectStorage.region", "objectStorage.accessKeyID", "milvusConfig"})
	i := New(settings, nil)
	defer i.Close()
	var told []string
	i.OnSecret = func(value string) { told = append(told, value) }
	if err := i.Configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Etcd: Etcd{Endpoints: lab.Etcd.Endpoints, RootPath: "from-file", MetaSubPath: "meta"},
		ObjectStorage: ObjectStorage{Endpoint: "my-minio:9001", Bucket: "of-user", RootPath: "a/b", Region: "of-the-plan",
			AccessKeyID: secret.Value{Literal: "planned"}},
		WAL: WAL{Type: "woodpecker", StorageType: "minio", MetaPrefix: "wp2"},
	}
	if diff := cmp.Diff(want, i.Settings, cmpopts.IgnoreUnexported(Settings{}), cmpopts.IgnoreFields(Settings{}, "MilvusConfig")); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
	if got, err := i.secretOr(t.Context(), i.Settings.ObjectStorage.SecretAccessKey, "minio.secretAccessKey"); err != nil || got != "of-the-file" {
		t.Errorf("the secret key is %q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"of-the-file"}, told); diff != "" {
		t.Errorf("secrets told differ (-want +got):\n%s", diff)
	}
	resolved, notes := i.Resolution()
	var lines []string
	for _, r := range resolved {
		lines = append(lines, strings.ReplaceAll(r.Field+" = "+r.Value+" < "+r.Source+" ("+r.Lost+")", dir+"/", ""))
	}
	text := strings.Join(append(lines, notes...), "\n")
	for _, want := range []string{
		"etcd.rootPath = from-file < default.yaml ()",
		"etcd.metaSubPath = meta < milvus's default ()",
		"objectStorage.endpoint = my-minio:9001 < default.yaml ()",
		"objectStorage.bucket = of-user < user.yaml (default.yaml says b)",
		"objectStorage.rootPath = a/b < default.yaml ()",
		"objectStorage.region = of-the-plan < the plan ()",
		"objectStorage.secretAccessKey = ******** < default.yaml ()",
		"objectStorage.accessKeyID = ******** < the plan, from ******** ()",
		"wal.storageType = minio < etcd from-file/config/woodpecker/storage/type (default.yaml says service)",
		"mq.type = pulsar < etcd from-file/config/mqtype (default.yaml says kafka)",
		"MINIO_PORT=tcp://10.0.0.7:9000 is a service link",
		"mq is given more than once, the last one (line 13) counts",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "of-the-file") || strings.Contains(text, "planned") {
		t.Errorf("a secret is shown:\n%s", text)
	}
}

func TestMilvusConfigurationsThatAreRefused(t *testing.T) {
	tests := []struct {
		name, user string
		env        map[string]string
		code       string
	}{
		{name: "etcd inside milvus", user: "etcd: {use: {embed: true}}\n", code: "instance.etcd-embedded"},
		{name: "certificates of the pod", user: "etcd: {ssl: {enabled: true, tlsCACert: /milvus/tls/ca.pem}}\n", code: "instance.tls-files"},
		{name: "a credential in the plan", env: map[string]string{"MINIO_SECRET_ACCESS_KEY": "x"}, code: "instance.secret-in-clear"},
		{name: "no YAML", user: "mq: [\n", code: "instance.milvus-config"},
		{name: "no file", user: "-", code: "instance.milvus-config"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "user.yaml")
			if test.user != "-" {
				if err := os.WriteFile(path, []byte(test.user), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			settings := Settings{MilvusConfig: &MilvusConfig{Files: []string{path}, Env: test.env}}
			settings.SetGiven([]string{"milvusConfig"})
			err := New(settings, nil).Configure(t.Context())
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != test.code || e.Kind != fault.Refused || len(e.Hints) == 0 {
				t.Errorf("error is %v, want a refusal %s with a hint", err, test.code)
			}
		})
	}
}
