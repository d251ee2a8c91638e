package milvus

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// ConfigFile is one file that a Milvus process reads its configuration from.
type ConfigFile struct {
	Name string // milvus.yaml, default.yaml, user.yaml: decides the precedence
	From string // where it was read, for people: a path, a ConfigMap
	Text string
}

// ConfigVariable is one environment variable of a Milvus process.
type ConfigVariable struct {
	Name, Value string
	From        string // where it was found, for people
	Secret      bool   // never to be shown
}

// ConfigSources is everything that a Milvus process reads its settings from. The
// strongest is Overrides, what the instance keeps in etcd; then the environment;
// then the files (config/source.go and base_table.go of Milvus 2.6).
type ConfigSources struct {
	Files     []ConfigFile
	Env       []ConfigVariable
	Overrides Overrides
}

// Setting is one resolved value.
type Setting struct {
	Key    string // as milvus.yaml spells it
	Value  string // never show this one, see Shown
	Source string // where the value comes from, for people
	Given  bool   // false: it is Milvus's default
	Secret bool
	Lost   []string // what weaker sources say, when that differs: "default.yaml says pulsar"
}

// Shown is the value as it may be printed.
func (s Setting) Shown() string {
	if s.Secret && s.Value != "" {
		return "********"
	}
	return s.Value
}

// Config is the configuration that a Milvus process would have.
type Config struct {
	// Notes are what a person should know about how the values came to be.
	Notes []string

	found     map[string][]entry // by formatted key, strongest first
	imageFile bool               // the image's own milvus.yaml is among the files
}

// entry is one value of one source.
type entry struct {
	value, source string
	secret        bool
}

// filePrecedence is the order in which Milvus merges its files, weakest first.
var filePrecedence = []string{imageFileName, "_test.yaml", "default.yaml", "user.yaml"}

// imageFileName is the file that comes with Milvus's image.
const imageFileName = "milvus.yaml"

// formatKey is the form in which Milvus compares keys: by it, MQ_TYPE, mq.type and
// mqType are one.
func formatKey(key string) string {
	return strings.NewReplacer("/", "", "_", "", ".", "").Replace(strings.ToLower(key))
}

// ResolveConfig merges the sources as Milvus 2.6 and 3.0 do. Nothing is taken from
// the environment of this program.
func ResolveConfig(in ConfigSources) (*Config, error) {
	c := &Config{found: map[string][]entry{}}
	c.addOverrides(in.Overrides)
	c.addEnv(in.Env)
	files := slices.Clone(in.Files)
	for _, f := range files {
		if !slices.Contains(filePrecedence, f.Name) {
			return nil, fmt.Errorf("%s: milvus reads no file of this name, only %s", f.From, strings.Join(filePrecedence, ", "))
		}
		c.imageFile = c.imageFile || f.Name == imageFileName
	}
	slices.SortStableFunc(files, func(a, b ConfigFile) int {
		return slices.Index(filePrecedence, b.Name) - slices.Index(filePrecedence, a.Name)
	})
	for _, f := range files {
		if err := c.addFile(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// addOverrides takes the values kept in etcd. How etcd itself is reached cannot
// come from there.
func (c *Config) addOverrides(overrides Overrides) {
	for _, o := range overrides {
		if !strings.HasPrefix(o.Name, "etcd") {
			c.add(o.Name, entry{value: o.Value, source: "etcd " + o.Key})
		}
	}
}

// addEnv takes variables by their formatted name; of two that mean the same key
// the later one counts here.
func (c *Config) addEnv(vars []ConfigVariable) {
	for _, v := range slices.Backward(vars) {
		key := variableKey(v.Name)
		if isServiceLink(v.Value) {
			if strings.HasSuffix(key, "port") && slices.ContainsFunc(settings, func(d settingDefault) bool { return formatKey(d.key) == key }) {
				c.note("%s=%s is a service link that Kubernetes set, not a port: it is ignored; enableServiceLinks: false in the pod template keeps milvus from reading it", v.Name, v.Value)
			}
			continue
		}
		source := "environment " + v.Name
		if v.From != "" {
			source += " (" + v.From + ")"
		}
		c.add(key, entry{value: v.Value, source: source, secret: v.Secret})
	}
}

// isServiceLink recognises what Kubernetes puts into NAME_PORT for a service:
// "tcp://10.0.0.7:9000".
func isServiceLink(value string) bool {
	scheme, rest, ok := strings.Cut(value, "://")
	return ok && rest != "" && slices.Contains([]string{"tcp", "udp", "sctp"}, scheme)
}

func (c *Config) addFile(f ConfigFile) error {
	flat, notes, err := flatten(f.Text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.From, err)
	}
	for _, note := range notes {
		c.note("%s: %s", f.From, note)
	}
	for key, value := range flat {
		c.add(key, entry{value: value, source: f.From})
	}
	return nil
}

func (c *Config) add(key string, e entry) { c.found[key] = append(c.found[key], e) }

func (c *Config) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// Get resolves one of the settings that this package knows, by the key that
// milvus.yaml uses.
func (c *Config) Get(key string) Setting {
	i := slices.IndexFunc(settings, func(d settingDefault) bool { return d.key == key })
	if i < 0 {
		panic("milvus: unknown setting " + key)
	}
	return c.resolve(settings[i])
}

// Settings resolves everything that this package knows, in milvus.yaml's order.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, d := range settings {
		all = append(all, c.resolve(d))
	}
	return all
}

func (c *Config) resolve(d settingDefault) Setting {
	s := Setting{Key: d.key, Secret: d.secret, Value: d.code, Source: "milvus's default"}
	if !c.imageFile && d.image != "" {
		s.Value, s.Source = d.image, "milvus.yaml of the image"
	}
	entries := c.found[formatKey(d.key)]
	if len(entries) == 0 {
		return s
	}
	s.Value, s.Source, s.Given = entries[0].value, entries[0].source, true
	s.Secret = s.Secret || entries[0].secret
	for _, weaker := range entries[1:] {
		if weaker.value != s.Value && !s.Secret && !weaker.secret {
			s.Lost = append(s.Lost, fmt.Sprintf("%s says %s", weaker.source, orNothing(weaker.value)))
		}
	}
	return s
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// Bool reads a setting that is a switch, as Milvus does: what is not a truth
// value is false.
func (c *Config) Bool(key string) bool {
	switch strings.ToLower(c.Get(key).Value) {
	case "true", "t", "1":
		return true
	}
	return false
}

// EtcdEndpoints are the members of Milvus's etcd, host:port each.
func (c *Config) EtcdEndpoints() []string {
	var endpoints []string
	for endpoint := range strings.SplitSeq(c.Get("etcd.endpoints").Value, ",") {
		if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints
}

// ObjectEndpoint is the object store's host:port: minio.port counts only when
// minio.address has none.
func (c *Config) ObjectEndpoint() string {
	address := c.Get("minio.address").Value
	if address == "" || strings.Contains(address, ":") {
		return address
	}
	return address + ":" + c.Get("minio.port").Value
}

// ObjectRoot is minio.rootPath as Milvus uses it: without a leading slash, cleaned,
// but an empty one stays empty.
func (c *Config) ObjectRoot() string {
	root := strings.TrimLeft(c.Get("minio.rootPath").Value, "/")
	if root == "" {
		return ""
	}
	return path.Clean(root)
}

// WALType is mq.type, and whether it says which WAL. "default" does not: what it
// stands for depends on settings with defaults of their own, and on the version.
func (c *Config) WALType() (WAL, bool) {
	wal, err := ParseWAL(c.Get("mq.type").Value)
	return wal, err == nil
}

// IsSecretSetting reports whether a key or a variable's name means a setting that
// must not be shown.
func IsSecretSetting(name string) bool {
	key := variableKey(name)
	return slices.ContainsFunc(settings, func(d settingDefault) bool { return d.secret && formatKey(d.key) == key })
}

// variableKey is the formatted key that a variable's name stands for: Milvus takes
// names with and without the prefixes "milvus." and "MILVUS_CONF_".
func variableKey(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "milvus.")
	return formatKey(strings.TrimPrefix(name, "milvus_conf_"))
}
