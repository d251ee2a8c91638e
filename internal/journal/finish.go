package journal

import (
	"bytes"
	"io"
	"path/filepath"
)

// Names of the reports in a run's folder.
const (
	MarkdownFile = "report.md"
	HTMLFile     = "report.html"
)

// Past is the run as its folder tells it so far.
func (r *Run) Past() *Past { return &Past{Record: r.Record, Dir: r.dir} }

// WriteReports leaves both reports in the run's folder.
func (p *Past) WriteReports() error {
	report, err := p.Report()
	if err != nil {
		return err
	}
	for name, render := range map[string]func(io.Writer) error{MarkdownFile: report.Markdown, HTMLFile: report.HTML} {
		var b bytes.Buffer
		if err := render(&b); err != nil {
			return err
		}
		path := filepath.Join(p.Dir, name)
		if err := writeFile(path, b.Bytes()); err != nil {
			return writeError(path, err)
		}
	}
	return nil
}
