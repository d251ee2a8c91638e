package checkpointreset

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"runbook/internal/milvus"
	"runbook/internal/step"
)

// findings is what one reading of an instance found: everything that the gates,
// the dry run and the outputs speak of. Its size does not depend on how many
// keys there are.
type findings struct {
	in     Inputs
	target milvus.Position
	root   string // etcd.rootPath
	meta   string

	revision int64
	proof    bool // a Milvus has used this root

	rewrites map[milvus.Family]*tally
	removed  map[milvus.Family]*sample
	channels milvus.WALCounts // that channel checkpoints name
	consumes milvus.WALCounts // that consume checkpoints name

	overrides milvus.Overrides
	pin       *milvus.Override
	setPin    bool

	pchannels         []string // that streamingcoord lists
	withoutCheckpoint []string // of these, the ones that were never consumed
	unlisted          []string // channels with a checkpoint that streamingcoord does not list
	unknownChannels   []string // named by the inputs, and nowhere else

	unreadable, unflushed, broadcasts, branches, replicating sample
	alterWAL, bothKeys, importing                            sample
	dropped, tombstones, noPosition                          int64
	compactions, watches                                     int64
	replicateConfig                                          bool

	inScope     map[int64]bool // collections with a channel in scope; nil: all
	legacy      map[int64]bool // collections under their legacy key
	assignments []string       // channels that have segment assignments
	checkpoints []string       // keys of consume checkpoints
}

// tally counts one family whose positions are rewritten.
type tally struct {
	found   int64
	changes sample
}

// sample counts places and keeps a few to show.
type sample struct {
	n    int64
	some []string
}

const (
	sampleSize = 5
	shownKey   = 200 // characters
)

func (s *sample) add(format string, args ...any) {
	s.n++
	if len(s.some) < sampleSize {
		text := []rune(fmt.Sprintf(format, args...))
		if len(text) > shownKey {
			text = append(text[:shownKey], '…')
		}
		s.some = append(s.some, strings.Map(printable, string(text)))
	}
}

// printable keeps what somebody wrote into a key from steering a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// lines are the places kept, and how many more there are.
func (s *sample) lines() []string {
	lines := slices.Clone(s.some)
	if more := s.n - int64(len(lines)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// rewritten are the families whose values are rewritten, in the order of writing.
// Collections under their legacy keys are counted as collections.
var rewritten = []milvus.Family{milvus.Collections, milvus.Segments, milvus.ChannelCheckpoints, milvus.ConsumeCheckpoints}

// removedFamilies are the ones whose keys are removed, after all writing is done.
var removedFamilies = []milvus.Family{milvus.SegmentAssignments, milvus.QueryTargets}

// text is the sample in one line.
func (s *sample) text() string { return strings.Join(s.lines(), "; ") }

func newFindings(env *step.Env, in Inputs, target milvus.Position, revision int64) *findings {
	f := &findings{
		in: in, target: target, revision: revision,
		root: env.Instance.Settings.Etcd.RootPath, meta: env.Instance.Settings.MetaRoot(),
		rewrites: map[milvus.Family]*tally{}, removed: map[milvus.Family]*sample{},
		channels: milvus.WALCounts{}, consumes: milvus.WALCounts{}, legacy: map[int64]bool{},
	}
	for _, family := range rewritten {
		f.rewrites[family] = &tally{}
	}
	for _, family := range removedFamilies {
		f.removed[family] = &sample{}
	}
	if len(in.Pchannels) > 0 {
		f.inScope = map[int64]bool{}
	}
	return f
}

// scoped says whether a run changes the positions of a physical channel.
func (f *findings) scoped(pchannel string) bool {
	return len(f.in.Pchannels) == 0 || slices.Contains(f.in.Pchannels, pchannel)
}
