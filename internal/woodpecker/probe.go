package woodpecker

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"runbook/internal/fault"
)

// Auto leaves the choice of the prefix to Survey.Choose.
const Auto = "auto"

// The codes of Survey.Choose's refusals.
const (
	CodeNoWAL     = "wal.no-version-key"
	CodePartial   = "wal.partial-keys"
	CodeLegacy    = "wal.legacy-prefix"
	CodeSeveral   = "wal.several-prefixes"
	CodeBadPrefix = "wal.bad-prefix"
	CodeUnseen    = "wal.prefix-not-readable"
)

// Site is a prefix at which some of the four instance keys exist.
type Site struct {
	Prefix  string
	Missing []string // instance keys that do not exist
}

// Survey is where in one etcd woodpecker metadata of a Milvus may lie, and does.
type Survey struct {
	Root   string   // the Milvus's etcd.rootPath
	Looked []string // every prefix looked at, the most likely first
	Sites  []Site   // those of them that hold instance keys
	Unseen []string // those that this etcd user may not read
	// Legacy says that a woodpecker client (v0.1.37 and later) that connects to
	// this etcd uses the top-level LegacyPrefix, whatever it is configured with.
	Legacy bool
}

// PrefixesOf lists where woodpecker metadata of the Milvus with this
// etcd.rootPath may lie, the most likely first:
//
//	{root}/woodpecker            Milvus 2.6 and 3.0 with woodpecker.meta.prefix as shipped
//	woodpecker                   early woodpecker: the prefix was fixed
//	{root}/wp                    what the first 2.6 releases configured
//	woodpecker/{root}/wp         the same, with a woodpecker whose own root was left as shipped
//	woodpecker/woodpecker        both left as shipped
func PrefixesOf(root string) []string {
	return []string{
		path.Join(root, "woodpecker"), LegacyPrefix, path.Join(root, "wp"),
		path.Join(LegacyPrefix, root, "wp"), path.Join(LegacyPrefix, "woodpecker"),
	}
}

// Named turns wal.metaPrefix into a prefix: "name" is below root, "/name" is not.
func Named(root, metaPrefix string) (string, error) {
	prefix := root + "/" + metaPrefix
	if top, ok := strings.CutPrefix(metaPrefix, "/"); ok {
		prefix = top
	}
	if prefix != path.Clean(prefix) || strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, ".") {
		return "", fault.Refuse(CodeBadPrefix, "no usable prefix: %q", metaPrefix).At("instance.wal.metaPrefix").
			Hint(`set it to "auto", to a name below etcd.rootPath such as "woodpecker", or to a top-level one such as "/woodpecker"`)
	}
	return prefix, nil
}

// Look surveys the etcd of the Milvus with this etcd.rootPath. It reads only.
func Look(ctx context.Context, etcd clientv3.KV, root, metaPrefix string) (Survey, error) {
	survey := Survey{Root: root, Looked: PrefixesOf(root)}
	if metaPrefix != Auto {
		named, err := Named(root, metaPrefix)
		if err != nil {
			return survey, err
		}
		survey.Looked = append([]string{named}, slices.DeleteFunc(survey.Looked, func(p string) bool { return p == named })...)
	}
	for _, prefix := range survey.Looked {
		site, err := SiteAt(ctx, etcd, prefix)
		switch {
		case errors.Is(err, rpctypes.ErrPermissionDenied):
			survey.Unseen = append(survey.Unseen, prefix)
		case err != nil:
			return survey, err
		case len(site.Missing) < len(NewKeys(prefix).InstanceKeys()):
			survey.Sites = append(survey.Sites, site)
		}
	}
	if slices.Contains(survey.Unseen, LegacyPrefix) {
		return survey, nil
	}
	var err error
	survey.Legacy, err = legacyTakesOver(ctx, etcd)
	return survey, err
}

// SiteAt reads which of the instance keys exist at prefix.
func SiteAt(ctx context.Context, etcd clientv3.KV, prefix string) (Site, error) {
	site := Site{Prefix: prefix}
	keys := NewKeys(prefix).InstanceKeys()
	found, err := existing(ctx, etcd, keys, nil)
	if err != nil {
		return site, fmt.Errorf("look for woodpecker at %s: %w", prefix, err)
	}
	for i, key := range keys {
		if !found[i] {
			site.Missing = append(site.Missing, key)
		}
	}
	return site, nil
}

// legacyTakesOver repeats the test that a woodpecker client makes when it
// connects. Neither marking/ nor logs-deleted/ is part of it.
func legacyTakesOver(ctx context.Context, etcd clientv3.KV) (bool, error) {
	legacy := NewKeys(LegacyPrefix)
	keys := append(legacy.InstanceKeys(), legacy.ConditionWrite())
	prefixes := slices.DeleteFunc(legacy.Content(), func(prefix string) bool {
		return prefix == legacy.ParkedLogs() || prefix == legacy.marking()
	})
	found, err := existing(ctx, etcd, keys, prefixes)
	if err != nil {
		return false, fmt.Errorf("look for legacy woodpecker metadata: %w", err)
	}
	return slices.Contains(found, true), nil
}

// existing says for each key, then for each prefix, whether anything is there.
func existing(ctx context.Context, etcd clientv3.KV, keys, prefixes []string) ([]bool, error) {
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, clientv3.OpGet(key, clientv3.WithCountOnly()))
	}
	for _, prefix := range prefixes {
		ops = append(ops, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()))
	}
	resp, err := etcd.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(ops))
	for i, r := range resp.Responses {
		found[i] = r.GetResponseRange().GetCount() > 0
	}
	return found, nil
}

// Choose picks the prefix to work on, the one that Milvus's own client would
// use, and says what else an operator should know. What it cannot decide
// without risk it refuses, and says what decides it.
func (s Survey) Choose(metaPrefix string) (prefix string, notes []string, err error) {
	if metaPrefix != Auto {
		return s.named()
	}
	switch {
	case slices.Contains(s.Unseen, LegacyPrefix):
		return "", nil, fault.Refuse(CodeUnseen, "this etcd user may not read %s/, and woodpecker keys there would decide which prefix milvus uses", LegacyPrefix).
			Hint("let the user read %s/, or set instance.wal.metaPrefix to the prefix that milvus uses", LegacyPrefix)
	case len(s.Sites) > 1:
		return "", nil, s.several()
	case s.Legacy:
		return "", nil, s.legacy()
	case len(s.Sites) == 0:
		return "", nil, s.nothing()
	}
	site := s.Sites[0]
	if len(site.Missing) > 0 {
		return "", nil, site.partial()
	}
	if site.Prefix != s.Looked[0] {
		notes = append(notes, fmt.Sprintf("woodpecker's metadata lies at %s: milvus versions that look at %s do not find it", site.Prefix, s.Looked[0]))
	}
	return site.Prefix, notes, nil
}

// named is for a prefix that the plan names: Looked begins with it.
func (s Survey) named() (string, []string, error) {
	prefix := s.Looked[0]
	at := slices.IndexFunc(s.Sites, func(site Site) bool { return site.Prefix == prefix })
	switch {
	case slices.Contains(s.Unseen, prefix):
		return "", nil, fault.Refuse(CodeUnseen, "this etcd user may not read %s/", prefix).Hint("let the user in instance.etcd read it")
	case at < 0:
		return "", nil, s.nothing()
	case len(s.Sites[at].Missing) > 0:
		return "", nil, s.Sites[at].partial()
	}
	var notes []string
	if s.Legacy && prefix != LegacyPrefix {
		notes = append(notes, fmt.Sprintf("%s/ exists in this etcd: woodpecker clients from v0.1.37 on use it instead of %s", LegacyPrefix, prefix))
	}
	return prefix, notes, nil
}

func (s Survey) nothing() error {
	refusal := fault.Refuse(CodeNoWAL, "no woodpecker metadata: no version key at %s", strings.Join(s.Looked, ", "))
	if len(s.Sites) > 0 {
		refusal = fault.Refuse(CodeNoWAL, "no woodpecker metadata at %s: no version key there", s.Looked[0])
		for _, site := range s.Sites {
			refusal.Hint("set instance.wal.metaPrefix: %s if this is the one: it exists", s.spell(site.Prefix))
		}
	}
	return refusal
}

func (s Survey) several() error {
	names := make([]string, len(s.Sites))
	for i, site := range s.Sites {
		names[i] = site.Prefix
	}
	refusal := fault.Refuse(CodeSeveral, "woodpecker metadata exists at several prefixes: %s", strings.Join(names, ", "))
	if s.Legacy {
		refusal.Hint("know that woodpecker clients from v0.1.37 on use %s here, whatever is configured", LegacyPrefix)
	}
	for _, site := range s.Sites {
		refusal.Hint("set instance.wal.metaPrefix: %s to reset that one", s.spell(site.Prefix))
	}
	return refusal
}

func (s Survey) legacy() error {
	for _, site := range s.Sites {
		if site.Prefix == LegacyPrefix && len(site.Missing) > 0 {
			return site.partial()
		}
	}
	if len(s.Sites) == 0 {
		return fault.Refuse(CodePartial, "keys of a woodpecker without instance keys lie at %s/: a client would use them and not %s", LegacyPrefix, s.Looked[0]).
			Hint("find out whose they are: `etcdctl get --prefix --keys-only %s/`; delete them by hand if they are nobody's", LegacyPrefix)
	}
	return fault.Refuse(CodeLegacy, "milvus's woodpecker uses the legacy prefix %s, which every milvus on this etcd would share", LegacyPrefix).
		At(NewKeys(LegacyPrefix).Version()).
		Hint("set instance.wal.metaPrefix: /%s to reset it all the same, when no other milvus uses this etcd", LegacyPrefix)
}

// spell writes a prefix the way wal.metaPrefix is written.
func (s Survey) spell(prefix string) string {
	if name, ok := strings.CutPrefix(prefix, s.Root+"/"); ok {
		return name
	}
	return "/" + prefix
}

func (s Site) partial() error {
	refusal := fault.Refuse(CodePartial, "only some of woodpecker's instance keys exist at %s, so that no milvus can start on it either; missing: %s", s.Prefix, strings.Join(s.Missing, ", "))
	keys := NewKeys(s.Prefix)
	for _, key := range s.Missing {
		switch key {
		case keys.Instance():
			refusal.Hint("restore the instance key: `etcdctl put %s \"$(uuidgen)\"`", key)
		case keys.Version():
			refusal.Hint("restore the version key: `printf '\\x08\\x01' | etcdctl put %s`", key)
		case keys.QuorumCounter():
			refusal.Hint("restore the quorum counter: `etcdctl put %s 0`", key)
		case keys.LogIDCounter():
			refusal.Hint("restore the log id counter from a backup of etcd, or set it to the highest log id ever used, never lower: `etcdctl put %s N`", key)
		}
	}
	return refusal
}
