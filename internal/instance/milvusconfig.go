package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runbook/internal/fault"
	"runbook/internal/kube"
	"runbook/internal/milvus"
	"runbook/internal/secret"
)

// resolution is what Configure found out.
type resolution struct {
	done    bool
	used    []Resolved
	notes   []string
	secrets map[string]string // by Milvus's key; never in Settings, which is printed and kept
}

// Resolved is one setting and where it comes from.
type Resolved struct {
	Field  string `json:"field"` // as the plan would write it: etcd.rootPath
	Value  string `json:"value"` // secrets are masked
	Source string `json:"source"`
	Lost   string `json:"lost,omitempty"` // what weaker sources say
}

// Configure fills in from Milvus's own configuration what the plan does not give.
// Without instance.milvusConfig it does nothing. It reads only, and only once;
// call it before anything else of the instance is used.
func (i *Instance) Configure(ctx context.Context) error {
	if i.Settings.MilvusConfig == nil || i.resolved.done {
		return nil
	}
	sources, err := i.configSources(ctx)
	if err != nil {
		return err
	}
	config, err := milvus.ResolveConfig(sources)
	if err != nil {
		return unreadableConfig(err)
	}
	// How etcd is reached comes from files and environment alone; what etcd itself
	// overrides can only be read after that.
	if err := i.adoptEtcd(config); err != nil {
		return err
	}
	if sources.Overrides, err = i.overrides(ctx); err != nil {
		return err
	}
	if config, err = milvus.ResolveConfig(sources); err != nil {
		return unreadableConfig(err)
	}
	if err := i.adoptRest(config); err != nil {
		return err
	}
	i.resolved.notes = append(i.resolved.notes, config.Notes...)
	i.resolved.done = true
	return nil
}

// Resolution is what Configure took from Milvus's configuration, and what a person
// should know about it.
func (i *Instance) Resolution() (settings []Resolved, notes []string) {
	return i.resolved.used, i.resolved.notes
}

func unreadableConfig(err error) error {
	return fault.Refuse("instance.milvus-config", "milvus's configuration cannot be read").Because(err).
		Hint("give files as milvus itself reads them; %s", "`helm get values` output is not one")
}

// configSources gathers files and environment.
func (i *Instance) configSources(ctx context.Context) (milvus.ConfigSources, error) {
	s := i.Settings.MilvusConfig
	var sources milvus.ConfigSources
	if s.ConfigMap {
		if err := i.fromRelease(ctx, &sources); err != nil {
			return sources, err
		}
	}
	for _, path := range s.Files {
		text, err := os.ReadFile(path)
		if err != nil {
			return sources, unreadableConfig(err)
		}
		sources.Files = append(sources.Files, milvus.ConfigFile{Name: filepath.Base(path), From: path, Text: string(text)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if milvus.IsSecretSetting(name) {
			i.tellSecret(s.Env[name])
			return sources, fault.Refuse("instance.secret-in-clear", "milvusConfig.env holds a credential in clear").At(name).
				Hint("remove it and give it as a reference in instance.etcd or instance.objectStorage: {valueFrom: {env: NAME}}")
		}
		sources.Env = append(sources.Env, milvus.ConfigVariable{Name: name, Value: s.Env[name], From: "milvusConfig.env"})
	}
	return sources, nil
}

// fromRelease reads the ConfigMap and the pod template of the release.
func (i *Instance) fromRelease(ctx context.Context, sources *milvus.ConfigSources) error {
	client, err := i.Kube()
	if err != nil {
		return err
	}
	state, err := client.Look(ctx, i.Release())
	if err != nil {
		return err
	}
	config, err := client.MilvusConfig(ctx, state)
	if err != nil {
		return err
	}
	sources.Files = ConfigFiles(config)
	vars, notes, err := client.MilvusEnv(ctx, state)
	if err != nil {
		return err
	}
	for _, v := range vars {
		if v.Secret {
			i.tellSecret(v.Value)
		}
		sources.Env = append(sources.Env, milvus.ConfigVariable{Name: v.Name, Value: v.Value, From: v.From, Secret: v.Secret})
	}
	i.resolved.notes = append(i.resolved.notes, notes...)
	return nil
}

// ConfigFiles names the files of a release's configuration for milvus.ResolveConfig.
func ConfigFiles(config *kube.MilvusConfig) []milvus.ConfigFile {
	var files []milvus.ConfigFile
	for _, f := range config.Files {
		files = append(files, milvus.ConfigFile{Name: f.Name, From: fmt.Sprintf("%s of configmap %s", f.Key, config.ConfigMap), Text: f.Text})
	}
	return files
}

func (i *Instance) overrides(ctx context.Context) (milvus.Overrides, error) {
	client, err := i.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	view, err := milvus.NewView(ctx, client, i.Settings.MetaRoot())
	if err != nil {
		return nil, i.etcdUnread(err)
	}
	overrides, err := milvus.ReadOverrides(ctx, view, i.Settings.Etcd.RootPath)
	if err != nil {
		return nil, i.etcdUnread(err)
	}
	return overrides, nil
}

func (i *Instance) etcdUnread(err error) error {
	return fault.Refuse("instance.etcd", "etcd does not answer, and it can override milvus's configuration").
		At(strings.Join(i.Settings.Etcd.Endpoints, ",")).Because(err).
		Hint("check that these endpoints are right; give instance.etcd.endpoints to use others").
		Hint("addresses inside a cluster: set instance.kubernetes.portForward: true")
}

// adoptEtcd takes what says how etcd is reached.
func (i *Instance) adoptEtcd(c *milvus.Config) error {
	if c.Bool("etcd.use.embed") && !i.given("etcd.endpoints") {
		return fault.Refuse("instance.etcd-embedded", "milvus runs etcd inside its own process: it is gone when milvus is stopped").
			Hint("start that data directory with an etcd of its own and give instance.etcd.endpoints")
	}
	s := &i.Settings.Etcd
	take(i, "etcd.endpoints", c.Get("etcd.endpoints"), &s.Endpoints, c.EtcdEndpoints())
	i.takeText("etcd.rootPath", c.Get("etcd.rootPath"), &s.RootPath)
	i.takeText("etcd.metaSubPath", c.Get("etcd.metaSubPath"), &s.MetaSubPath)
	if c.Bool("etcd.auth.enabled") {
		i.takeText("etcd.username", c.Get("etcd.auth.userName"), &s.Username)
		i.takeSecret("etcd.password", c.Get("etcd.auth.password"), s.Password)
	}
	if !c.Bool("etcd.ssl.enabled") || s.TLS != nil {
		return nil
	}
	tls := &TLS{CACert: c.Get("etcd.ssl.tlsCACert").Value, Cert: c.Get("etcd.ssl.tlsCert").Value, Key: c.Get("etcd.ssl.tlsKey").Value}
	for _, path := range []string{tls.CACert, tls.Cert, tls.Key} {
		if err := hasFile(path, "instance.etcd.tls"); err != nil {
			return err
		}
	}
	take(i, "etcd.tls", c.Get("etcd.ssl.enabled"), &s.TLS, tls)
	return nil
}

// hasFile refuses a path of Milvus's configuration that means a file of the pod's.
func hasFile(path, field string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fault.Refuse("instance.tls-files", "milvus's configuration names a file that is not here").At(path).
			Hint("copy it from a milvus pod and name the copy in %s", field)
	}
	return nil
}

// adoptRest takes everything that etcd may override.
func (i *Instance) adoptRest(c *milvus.Config) error {
	if kind := c.Get("metastore.type"); kind.Value != "etcd" {
		return fault.Refuse("instance.metastore", "milvus keeps its metadata in %s (%s), only etcd is supported", kind.Value, kind.Source).
			Hint("nothing to do here: positions are not in etcd")
	}
	o := &i.Settings.ObjectStorage
	take(i, "objectStorage.endpoint", c.Get("minio.address"), &o.Endpoint, c.ObjectEndpoint())
	i.takeText("objectStorage.bucket", c.Get("minio.bucketName"), &o.Bucket)
	take(i, "objectStorage.rootPath", c.Get("minio.rootPath"), &o.RootPath, c.ObjectRoot())
	i.takeText("objectStorage.region", c.Get("minio.region"), &o.Region)
	take(i, "objectStorage.secure", c.Get("minio.useSSL"), &o.Secure, c.Bool("minio.useSSL"))
	take(i, "objectStorage.virtualHost", c.Get("minio.useVirtualHost"), &o.VirtualHost, c.Bool("minio.useVirtualHost"))
	if o.Secure && !i.given("objectStorage.caCert") {
		if err := hasFile(c.Get("minio.ssl.tlsCACert").Value, "instance.objectStorage.caCert"); err != nil {
			return err
		}
		i.takeText("objectStorage.caCert", c.Get("minio.ssl.tlsCACert"), &o.CACert)
	}
	if c.Bool("minio.useIAM") && !o.AccessKeyID.IsSet() {
		return fault.Refuse("instance.iam", "milvus reaches its object store by the identity of its pods, not by a key").
			Hint("give a key that may list and delete: instance.objectStorage.accessKeyID and secretAccessKey")
	}
	i.takeSecret("objectStorage.accessKeyID", c.Get("minio.accessKeyID"), o.AccessKeyID)
	i.takeSecret("objectStorage.secretAccessKey", c.Get("minio.secretAccessKey"), o.SecretAccessKey)
	i.adoptWAL(c)
	return nil
}

// adoptWAL takes what says where woodpecker keeps its things. Which WAL is to be
// reset is the plan's to say: mq.type may still name the old one.
func (i *Instance) adoptWAL(c *milvus.Config) {
	w := &i.Settings.WAL
	i.takeText("wal.storageType", c.Get("woodpecker.storage.type"), &w.StorageType)
	if prefix := c.Get("woodpecker.meta.prefix"); prefix.Given && prefix.Value != "woodpecker" {
		i.takeText("wal.metaPrefix", prefix, &w.MetaPrefix) // else auto finds it, legacy layouts too
	}
	mq := c.Get("mq.type")
	i.resolved.used = append(i.resolved.used, Resolved{Field: mq.Key, Value: mq.Value, Source: mq.Source, Lost: strings.Join(mq.Lost, "; ")})
}

// given reports whether the plan gave a field. Settings that do not come from a
// plan (a journal's) are complete but for secrets.
func (i *Instance) given(field string) bool {
	return i.Settings.given == nil || slices.Contains(i.Settings.given, field)
}

func (i *Instance) takeText(field string, from milvus.Setting, into *string) {
	take(i, field, from, into, from.Value)
}

// take puts a value of Milvus's configuration where the plan gives none.
func take[T any](i *Instance, field string, from milvus.Setting, into *T, value T) {
	shown := Resolved{Field: field, Value: fmt.Sprint(value), Source: from.Source, Lost: strings.Join(from.Lost, "; ")}
	if i.given(field) {
		shown.Value, shown.Source = fmt.Sprint(*into), "the plan"
		if i.Settings.given == nil {
			shown.Source = "the run's journal"
		}
	} else {
		*into = value
	}
	if !isEmpty(shown.Value) {
		i.resolved.used = append(i.resolved.used, shown)
	}
}

func isEmpty(shown string) bool { return shown == "" || shown == "[]" || shown == "<nil>" }

// takeSecret keeps a secret for when a client is made, unless the plan refers to one.
func (i *Instance) takeSecret(field string, from milvus.Setting, planned secret.Value) {
	shown := Resolved{Field: field, Value: secret.Mask, Source: from.Source}
	if planned.IsSet() {
		shown.Source = "the plan, from " + planned.String()
	} else {
		if i.resolved.secrets == nil {
			i.resolved.secrets = map[string]string{}
		}
		i.resolved.secrets[from.Key] = from.Value
		i.tellSecret(from.Value)
	}
	i.resolved.used = append(i.resolved.used, shown)
}

// secretOr reads a secret that the plan refers to, else the one that Milvus's
// configuration gives under key.
func (i *Instance) secretOr(ctx context.Context, v secret.Value, key string) (string, error) {
	if !v.IsSet() {
		if value, ok := i.resolved.secrets[key]; ok {
			return value, nil
		}
	}
	return i.Secret(ctx, v)
}
