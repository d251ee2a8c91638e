package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"runbook/internal/event"
	"runbook/internal/fault"
)

const (
	runsFolder = "runs"

	idTime     = "20060102T150405Z"
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz" // 32 letters that are hard to confuse
	idRandom   = 5

	// probeSize is what a run's folder must be able to take before a run begins:
	// more than the events of a run with thousands of steps.
	probeSize = 1 << 20
	// clockSlack is how far apart the clocks of machines may be that share a state directory.
	clockSlack = time.Minute
)

// Store is a state directory.
type Store struct{ dir string }

// Open names the state directory: flag when it is set, else the one that the XDG
// base directory specification gives. Nothing is created yet.
func Open(flag string) (*Store, error) {
	if flag != "" {
		dir, err := filepath.Abs(flag)
		return &Store{dir: dir}, err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return &Store{dir: filepath.Join(dir, "runbook")}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fault.BadUsage("journal.no-home", "no place to keep the journal: %s", err).
			Hint("name one with --state-dir")
	}
	return &Store{dir: filepath.Join(home, ".local", "state", "runbook")}, nil
}

// Dir is the state directory.
func (s *Store) Dir() string { return s.dir }

func (s *Store) runs() string { return filepath.Join(s.dir, runsFolder) }

// Contents is what a run's folder holds besides its Record from the start.
type Contents struct {
	Plan   []byte // as applied, secrets masked
	Inputs any    // written as JSON
	// Mask hides known secrets in whatever is appended; nil: nothing to hide.
	Mask func([]byte) []byte
}

// Create makes the folder of a new run and proves that it can be written to.
// record needs no ID. An error is of kind Refused: nothing has been changed yet.
func (s *Store) Create(record Record, contents Contents) (*Run, error) {
	r, err := s.create(record, contents)
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Failed {
			f.Kind = fault.Refused
		}
		return nil, err
	}
	return r, nil
}

func (s *Store) create(record Record, contents Contents) (*Run, error) {
	if err := os.MkdirAll(s.runs(), dirPerm); err != nil {
		return nil, writeError(s.runs(), err)
	}
	if err := s.checkClock(record.Started); err != nil {
		return nil, err
	}
	record.ID = newID(record.Started)
	dir := filepath.Join(s.runs(), record.ID)
	if err := os.Mkdir(dir, dirPerm); err != nil {
		return nil, writeError(dir, err)
	}
	r := &Run{Record: record, dir: dir, mask: contents.Mask}
	if r.mask == nil {
		r.mask = func(data []byte) []byte { return data }
	}
	if err := r.begin(contents); err != nil {
		return nil, errors.Join(writeError(dir, err), os.RemoveAll(dir))
	}
	return r, nil
}

// begin probes the folder and writes what never changes.
func (r *Run) begin(contents Contents) error {
	probe := filepath.Join(r.dir, ".probe")
	if err := writeFile(probe, bytes.Repeat([]byte{0xa5}, probeSize)); err != nil {
		return err
	}
	if err := os.Remove(probe); err != nil {
		return err
	}
	inputs, err := json.MarshalIndent(contents.Inputs, "", "  ")
	if err != nil {
		return err
	}
	record, err := json.MarshalIndent(r.Record, "", "  ")
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{planFile: contents.Plan, inputsFile: inputs, recordFile: record} {
		if err := writeFile(filepath.Join(r.dir, name), r.mask(data)); err != nil {
			return err
		}
	}
	r.events, err = os.OpenFile(filepath.Join(r.dir, eventsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, filePerm)
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(r.dir))
}

// checkClock refuses a clock that runs behind the newest run: ids sort by time,
// and an operator reads the order of events from them.
func (s *Store) checkClock(now time.Time) error {
	names, err := s.names()
	if err != nil || len(names) == 0 {
		return err
	}
	newest := names[len(names)-1]
	stamp, _, _ := strings.Cut(newest, "-")
	at, err := time.Parse(idTime, stamp)
	if err != nil || !at.After(now.Add(clockSlack)) {
		return nil
	}
	return fault.Refuse("journal.clock", "the clock says %s, but run %s was started later than that",
		now.UTC().Format(time.RFC3339), newest).At(s.runs()).
		Hint("set the clock of this machine, or name another place with --state-dir")
}

// names lists the ids of all runs, the oldest first.
func (s *Store) names() ([]string, error) {
	entries, err := os.ReadDir(s.runs())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, readError(s.runs(), err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func newID(now time.Time) string {
	random := make([]byte, idRandom)
	_, _ = rand.Read(random) // never fails, says crypto/rand
	for i, b := range random {
		random[i] = idAlphabet[int(b)%len(idAlphabet)]
	}
	return now.UTC().Format(idTime) + "-" + string(random)
}

func readError(path string, err error) error {
	f := fault.Fail("journal.read", "the journal cannot be read").At(path).Because(err)
	if errors.Is(err, syscall.ENOTDIR) {
		f.Hint("name the state directory with --state-dir")
	}
	return f
}

// Past is a run as its folder tells it, finished or not.
type Past struct {
	Record Record
	Dir    string
}

// List returns all runs, the newest first. A folder that cannot be read as a run
// is named in the error; the others are returned all the same.
func (s *Store) List() ([]*Past, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var runs []*Past
	var errs []error
	for _, name := range slices.Backward(names) {
		run, err := s.read(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		runs = append(runs, run)
	}
	return runs, errors.Join(errs...)
}

// Find returns the run whose id is id or begins with it or ends in it; "last" is
// the newest one.
func (s *Store) Find(id string) (*Past, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fault.BadUsage("journal.no-runs", "no run is recorded here").At(s.runs()).
			Hint("name the state directory with --state-dir")
	}
	if id == "last" {
		return s.read(names[len(names)-1])
	}
	var matches []string
	for _, name := range names {
		if name == id {
			return s.read(name)
		}
		if id != "" && (strings.HasPrefix(name, id) || strings.HasSuffix(name, id)) {
			matches = append(matches, name)
		}
	}
	switch len(matches) {
	case 1:
		return s.read(matches[0])
	case 0:
		return nil, fault.BadUsage("journal.unknown-run", "no run %q is recorded here", id).At(s.runs()).
			Hint("list them with `runbook runs list`; the newest is `last`")
	default:
		return nil, fault.BadUsage("journal.ambiguous-run", "%q may be %s", id, strings.Join(matches, ", ")).
			Hint("give more of the id")
	}
}

func (s *Store) read(name string) (*Past, error) {
	p := &Past{Dir: filepath.Join(s.runs(), name)}
	path := filepath.Join(p.Dir, recordFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, readError(path, err)
	}
	if err := json.Unmarshal(data, &p.Record); err != nil {
		return nil, readError(path, err)
	}
	return p, nil
}

// Inputs decodes what Contents.Inputs was.
func (p *Past) Inputs(into any) error {
	path := filepath.Join(p.Dir, inputsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return readError(path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return readError(path, err)
	}
	return nil
}

// Plan is the plan as applied, secrets masked.
func (p *Past) Plan() ([]byte, error) {
	path := filepath.Join(p.Dir, planFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, readError(path, err)
	}
	return data, nil
}

// Images lists the before-images, by step.
func (p *Past) Images() ([]*Image, error) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(p.Dir), "*"+imageSuffix))
	if err != nil {
		return nil, readError(p.Dir, err)
	}
	var images []*Image
	for _, path := range paths {
		images = append(images, &Image{Step: strings.TrimSuffix(filepath.Base(path), imageSuffix), Path: path})
	}
	return images, nil
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// Events reads every event that is whole. damaged says, for people, which lines
// were not: a run that was killed may leave half a line at the end.
func (p *Past) Events() (events []event.Event, damaged []string, err error) {
	path := filepath.Join(p.Dir, eventsFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, []string{eventsFile + " is missing"}, nil
	}
	if err != nil {
		return nil, nil, readError(path, err)
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		var e event.Event
		switch err := json.Unmarshal(line, &e); {
		case err == nil && bytes.HasSuffix(line, []byte("\n")):
			events = append(events, e)
		case !bytes.HasSuffix(line, []byte("\n")):
			damaged = append(damaged, lineOf(number, "was cut short"))
		default:
			damaged = append(damaged, lineOf(number, "cannot be read"))
		}
	}
	return events, damaged, nil
}

func lineOf(number int, what string) string {
	return fmt.Sprintf("%s: line %d %s", eventsFile, number, what)
}
