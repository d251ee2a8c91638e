package woodpecker

import (
	"strconv"
	"strings"
)

// LegacyPrefix is the top-level prefix that woodpecker used before it was
// configurable. A client takes it, whatever is configured, as soon as certain
// keys exist below it (see Survey).
const LegacyPrefix = "woodpecker"

// Keys spells the etcd keys of one woodpecker, all below one prefix. It says the
// same as meta.KeyBuilder, which a test compares it to; that package is not
// linked because it brings along woodpecker's logging, metrics and configuration.
type Keys struct{ prefix string }

// NewKeys takes the prefix without a trailing slash: "by-dev/woodpecker".
func NewKeys(prefix string) Keys { return Keys{prefix} }

// Prefix is what NewKeys was given.
func (k Keys) Prefix() string { return k.prefix }

// Root is the prefix of every key, with its slash.
func (k Keys) Root() string { return k.prefix + "/" }

// The four instance keys, written together at the first start of a client. A
// client does not start while only some of them exist.
func (k Keys) Instance() string      { return k.Root() + "instance" }    // text: a uuid that nothing reads
func (k Keys) Version() string       { return k.Root() + "version" }     // proto Version
func (k Keys) LogIDCounter() string  { return k.Root() + "logidgen" }    // decimal text: the newest log's id
func (k Keys) QuorumCounter() string { return k.Root() + "quorumidgen" } // decimal text, "0" since quorums are not counted

// InstanceKeys are these four.
func (k Keys) InstanceKeys() []string {
	return []string{k.Instance(), k.Version(), k.LogIDCounter(), k.QuorumCounter()}
}

// ConditionWrite caches ("true" or "false") whether the object store knows
// conditional writes; written by embedded clients with storage type minio.
func (k Keys) ConditionWrite() string { return k.Root() + "conditionwrite" }

// Logs is the prefix of live logs, with its slash.
func (k Keys) Logs() string { return k.Root() + "logs/" }

// ParkedLogs is the prefix of the copies that deleting a log leaves, with its slash.
func (k Keys) ParkedLogs() string { return k.Root() + "logs-deleted/" }

// Content are the prefixes, each with its slash, of everything that is neither
// an instance key nor ConditionWrite. Nothing writes quorums and logstores any
// more; early versions did.
func (k Keys) Content() []string {
	prefixes := []string{k.Logs(), k.ParkedLogs(), k.Root() + "quorums/", k.Root() + "logstores/"}
	return append(prefixes, k.byLogID()...)
}

// byLogID are the prefixes below which records are kept by a log's id: marks
// still to be handed out, cleaning records, readers.
func (k Keys) byLogID() []string {
	return []string{k.marking(), k.Root() + "cleaning/", k.Root() + "readers/"}
}

func (k Keys) marking() string { return k.Root() + "marking/" }

// LogKey is the key of a live log's LogMeta.
func (k Keys) LogKey(name string) string { return k.Logs() + name }

// ParkedKey is the key of a parked log's LogMeta; name is "{log}-{deletion time in ns}".
func (k Keys) ParkedKey(name string) string { return k.ParkedLogs() + name }

// OfLogID are the prefixes, with their slash, of the records kept by this id.
func (k Keys) OfLogID(id int64) []string {
	prefixes := k.byLogID()
	for i := range prefixes {
		prefixes[i] += strconv.FormatInt(id, 10) + "/"
	}
	return prefixes
}

// Kind says what a key is.
type Kind int

// The kinds of keys.
const (
	Foreign       Kind = iota // not woodpecker's
	InstanceKey               // one of the four
	CachedSetting             // conditionwrite
	LogKey                    // a live log's LogMeta
	SegmentKey                // a live log's SegmentMetadata
	LockKey                   // a live log's writer lock, leased for 15 s
	ParkedKey                 // a parked log's LogMeta
	ParkedSegment             // a parked log's SegmentMetadata
	ByLogID                   // marking, cleaning or reader record of a log id
	Other                     // below one of the content prefixes, in no known form
)

// Key is a key taken apart.
type Key struct {
	Kind  Kind
	Log   string // name; of a parked log with "-{deletion time in ns}"
	LogID int64  // ByLogID only
}

// Parse takes a key apart; one outside of the prefix is Foreign.
func (k Keys) Parse(key string) Key {
	rest, ok := strings.CutPrefix(key, k.Root())
	if !ok {
		return Key{}
	}
	if rest, ok := strings.CutPrefix(key, k.Logs()); ok {
		return parseLog(rest, LogKey, SegmentKey)
	}
	if rest, ok := strings.CutPrefix(key, k.ParkedLogs()); ok {
		return parseLog(rest, ParkedKey, ParkedSegment)
	}
	if !strings.Contains(rest, "/") {
		return Key{Kind: k.topLevel(key)}
	}
	for _, prefix := range k.byLogID() {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			return parseByID(rest)
		}
	}
	for _, prefix := range k.Content() {
		if strings.HasPrefix(key, prefix) {
			return Key{Kind: Other}
		}
	}
	return Key{}
}

func (k Keys) topLevel(key string) Kind {
	switch key {
	case k.Instance(), k.Version(), k.LogIDCounter(), k.QuorumCounter():
		return InstanceKey
	case k.ConditionWrite():
		return CachedSetting
	default:
		return Foreign
	}
}

// parseLog reads what follows logs/ or logs-deleted/: "{name}",
// "{name}/segments/{n}" or "{name}/lock/{lease}". Names hold no slash.
func parseLog(rest string, log, segment Kind) Key {
	name, below, nested := strings.Cut(rest, "/")
	switch {
	case name == "":
		return Key{Kind: Other}
	case !nested:
		return Key{Kind: log, Log: name}
	}
	if n, ok := strings.CutPrefix(below, "segments/"); ok {
		if _, ok := parseNumber(n); ok {
			return Key{Kind: segment, Log: name}
		}
	}
	if below == "lock" || strings.HasPrefix(below, "lock/") {
		return Key{Kind: LockKey, Log: name}
	}
	return Key{Kind: Other, Log: name}
}

func parseByID(rest string) Key {
	text, _, nested := strings.Cut(rest, "/")
	if id, ok := parseNumber(text); ok && nested {
		return Key{Kind: ByLogID, LogID: id}
	}
	return Key{Kind: Other}
}

// parseNumber reads a number the way woodpecker writes one: no sign, no leading zero.
func parseNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}
