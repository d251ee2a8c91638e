package woodpecker

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zilliztech/woodpecker/meta"
)

// What woodpecker itself writes is what this package must find.
func TestKeysAreSpelledAsWoodpeckerSpellsThem(t *testing.T) {
	theirs, ours := meta.NewKeyBuilder("by-dev/woodpecker"), NewKeys("by-dev/woodpecker")
	same := map[string]string{
		ours.Prefix():         theirs.Prefix(),
		ours.Instance():       theirs.ServiceInstanceKey(),
		ours.Version():        theirs.VersionKey(),
		ours.LogIDCounter():   theirs.LogIdGeneratorKey(),
		ours.QuorumCounter():  theirs.QuorumIdGeneratorKey(),
		ours.ConditionWrite(): theirs.ConditionWriteKey(),
		ours.LogKey("dml_0"):  theirs.BuildLogKey("dml_0"),
		ours.ParkedKey("a-7"): theirs.BuildLogDeletedKey("a", 7),
		LegacyPrefix:          meta.LegacyServicePrefix,
	}
	for our, their := range same {
		if our != their {
			t.Errorf("ours %q, theirs %q", our, their)
		}
	}
	wantByID := []string{theirs.BuildLogCompactedNotifyStatusPrefix(12), theirs.BuildLogCleanupStatusPrefix(12), theirs.BuildLogAllReaderTempInfosKey(12)}
	if diff := cmp.Diff(wantByID, ours.OfLogID(12)); diff != "" {
		t.Errorf("records of a log id (-theirs +ours):\n%s", diff)
	}
	wantContent := []string{
		theirs.LogsPrefix() + "/", theirs.LogDeletedPrefix() + "/", theirs.QuorumsPrefix() + "/", theirs.NodesPrefix() + "/",
		theirs.SegmentCompactedNotifyStatusPrefix() + "/", theirs.SegmentCleanupStatusPrefix() + "/", theirs.ReaderTempInfoPrefix() + "/",
	}
	if diff := cmp.Diff(wantContent, ours.Content()); diff != "" {
		t.Errorf("content prefixes (-theirs +ours):\n%s", diff)
	}
}

func TestEveryKeyThatWoodpeckerBuildsIsRecognised(t *testing.T) {
	b, keys := meta.NewKeyBuilder("p"), NewKeys("p")
	for key, want := range map[string]Key{
		b.ServiceInstanceKey():                         {Kind: InstanceKey},
		b.VersionKey():                                 {Kind: InstanceKey},
		b.LogIdGeneratorKey():                          {Kind: InstanceKey},
		b.QuorumIdGeneratorKey():                       {Kind: InstanceKey},
		b.ConditionWriteKey():                          {Kind: CachedSetting},
		b.BuildLogKey("by-dev-rootcoord-dml_0"):        {Kind: LogKey, Log: "by-dev-rootcoord-dml_0"},
		b.BuildSegmentInstanceKey("a", "3"):            {Kind: SegmentKey, Log: "a"},
		b.BuildLogLockKey("a"):                         {Kind: LockKey, Log: "a"},
		b.BuildLogLockKey("a") + "/694d9c2f0a7c0b1d":   {Kind: LockKey, Log: "a"},
		b.BuildLogDeletedKey("a", 1735689600000000000): {Kind: ParkedKey, Log: "a-1735689600000000000"},
		b.BuildLogDeletedSegmentKey("a", 17, 2):        {Kind: ParkedSegment, Log: "a-17"},
		b.BuildLogReaderTempInfoKey(5, "a-r-0-17"):     {Kind: ByLogID, LogID: 5},
		b.BuildSegmentCleanupStatusKey(5, 1):           {Kind: ByLogID, LogID: 5},
		b.BuildSegmentCompactedNotifyStatusKey(5, 1):   {Kind: ByLogID, LogID: 5},
		b.BuildQuorumInfoKey("1"):                      {Kind: Other},
		b.BuildNodeKey("n"):                            {Kind: Other},
		"p/logs/a/segments/03":                         {Kind: Other, Log: "a"},
		"p/logs/a/unheard-of":                          {Kind: Other, Log: "a"},
		"p/logs/":                                      {Kind: Other},
		"p/readers/five/x":                             {Kind: Other},
		"p/something":                                  {Kind: Foreign},
		"p/something/below":                            {Kind: Foreign},
		"p2/logs/a":                                    {Kind: Foreign},
		"p":                                            {Kind: Foreign},
	} {
		if diff := cmp.Diff(want, keys.Parse(key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// Nothing that ends without a slash may be used as a prefix: cleaning/1 is one of cleaning/12 too.
func TestEveryPrefixEndsInASlash(t *testing.T) {
	keys := NewKeys("p")
	for _, prefix := range slices.Concat(keys.Content(), keys.OfLogID(1), []string{keys.Root(), keys.Logs(), keys.ParkedLogs()}) {
		if !strings.HasSuffix(prefix, "/") {
			t.Errorf("%q has no slash at its end", prefix)
		}
	}
}

func FuzzParseKeyPutsEveryKeyBelowContentIntoIt(f *testing.F) {
	for _, seed := range []string{"p/logs/a", "p/logs/a/segments/0", "p/logs-deleted/a-1", "p/readers/1/x", "p/logs//", "p//", ""} {
		f.Add(seed)
	}
	keys := NewKeys("p")
	f.Fuzz(func(t *testing.T, key string) {
		got := keys.Parse(key)
		below := slices.ContainsFunc(keys.Content(), func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if isContent := got.Kind != Foreign && got.Kind != InstanceKey && got.Kind != CachedSetting; isContent != below {
			t.Errorf("%q is %+v, below a content prefix: %v", key, got, below)
		}
	})
}
