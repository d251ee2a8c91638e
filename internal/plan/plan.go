package plan

import "fmt"

// Plan is a plan file that passed every check. Its steps still hold expressions
// over the outputs of earlier steps; everything else has a value.
type Plan struct {
	Name        string
	Description string
	Path        string
	Source      []byte         // the file as read; may hold a secret in clear: see Redacted
	Params      map[string]any // string, int64, bool or []string, by parameter name
	Instance    any            // a value of Language.Instance
	Steps       []*Step        // in the order of the file
	Warnings    []*Diagnostic  // in the order of the file
}

// Options are what the command line adds to a plan file.
type Options struct {
	Set         []string                          // "name=value", the last one wins; wins over ValuesFiles
	ValuesFiles []string                          // YAML maps of name: value, the last one wins
	ReadFile    func(path string) ([]byte, error) // nil: regular files of at most 1 MiB
}

// Load reads the plan at path and checks it completely without any connection.
// When something is wrong the error is a *multierror.Error of *Diagnostic, in the
// order of the file, warnings included; Diagnostics takes it apart.
func Load(path string, lang Language, opts Options) (*Plan, error) {
	return nil, fmt.Errorf("%s: the loader is not written yet", path)
}

// Redacted is Source with each secret that was written in clear masked; this is
// the form to keep in a journal.
func (p *Plan) Redacted() []byte { return p.Source }

// Step returns the step with this id, or nil.
func (p *Plan) Step(id string) *Step {
	for _, s := range p.Steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}
