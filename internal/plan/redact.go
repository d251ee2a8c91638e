package plan

import (
	"strings"

	"runbook/internal/secret"
)

// Redacted is Source with each secret that was written in clear masked; this is
// the form to keep in a journal. Where a secret's text cannot be found exactly,
// nothing of the source is returned but a comment that says so.
func (p *Plan) Redacted() []byte {
	if len(p.secrets) == 0 {
		return p.Source
	}
	src := newSource(p.Source)
	for _, n := range p.secrets {
		if !src.mask(n) {
			return []byte("# the plan is not kept: a secret is written in clear and could not be masked\n")
		}
	}
	var lines []string
	for _, line := range src.lines {
		lines = append(lines, string(line))
	}
	out := strings.Join(lines, "\n")
	for _, n := range p.secrets { // a comment may repeat it
		out = strings.ReplaceAll(out, n.text, secret.Mask)
	}
	return []byte(out)
}

// mask replaces the text of a scalar on one line with as many asterisks, so that
// what follows keeps its place.
func (s *source) mask(n *node) bool {
	start := s.at(n, 0)
	end, ok := s.after(n)
	if !ok || start.Line != end.Line {
		return false
	}
	line := s.lines[start.Line-1]
	for i := start.Column - 1; i < end.Column-1; i++ {
		line[i] = rune(secret.Mask[0])
	}
	return true
}
