// Package verify decides from a survey whether one instance's WAL is empty. It
// is the second opinion on what runbook reports and shares no code with it.
package verify

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"runbook/e2e/lab/internal/layout"
	"runbook/e2e/lab/internal/survey"
)

// Expect says what the log id counter must be; nil asks nothing of it.
type Expect struct {
	Counter    *int64
	CounterMin *int64
}

// Check is one expectation and what was seen.
type Check struct {
	What     string `json:"what"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	OK       bool   `json:"ok"`
}

// Empty checks the instance against the survey.
func Empty(s *survey.Survey, i layout.Instance, e Expect) []Check {
	checks := checkMetadata(s, i, e)
	checks = append(checks, checkObjects(s, i))
	for _, d := range s.Disks {
		checks = append(checks, checkDisk(d, i))
	}
	return checks
}

// OK reports whether every check holds.
func OK(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.OK })
}

func checkMetadata(s *survey.Survey, i layout.Instance, e Expect) []Check {
	if s.EtcdError != "" {
		return []Check{{"metadata", "readable", s.EtcdError, false}}
	}
	m := survey.Metadata{Prefix: i.EtcdPrefix()}
	for _, candidate := range s.Metadata {
		if candidate.Prefix == i.EtcdPrefix() {
			m = candidate
		}
	}
	where := " at " + m.Prefix
	checks := []Check{
		equal("logs"+where, 0, len(m.Logs)),
		equal("parked logs"+where, 0, len(m.Parked)),
		equal("other keys"+where, 0, m.OtherKeys),
		equal("instance keys"+where, strings.Join(layout.InstanceKeyNames(), " "), strings.Join(m.InstanceKeys, " ")),
	}
	seen := "missing"
	if m.Counter != nil {
		seen = strconv.FormatInt(*m.Counter, 10)
	}
	if e.Counter != nil {
		checks = append(checks, equal("log id counter", strconv.FormatInt(*e.Counter, 10), seen))
	}
	if e.CounterMin != nil {
		checks = append(checks, Check{"log id counter", fmt.Sprintf("at least %d", *e.CounterMin), seen, m.Counter != nil && *m.Counter >= *e.CounterMin})
	}
	return checks
}

func equal[T comparable](what string, expected, seen T) Check {
	text := func(v T) string {
		if s := fmt.Sprint(v); s != "" {
			return s
		}
		return "none"
	}
	return Check{what, text(expected), text(seen), expected == seen}
}

func checkObjects(s *survey.Survey, i layout.Instance) Check {
	what := fmt.Sprintf("WAL objects below s3://%s/%s/", i.Bucket, i.WALRoot())
	if s.ObjectsError != "" {
		return Check{what, "readable", s.ObjectsError, false}
	}
	count := 0
	for _, r := range s.Objects {
		if r.Bucket == i.Bucket && r.Root == i.WALRoot() {
			for _, l := range r.Logs {
				count += l.Count
			}
		}
	}
	return equal(what, 0, count)
}

func checkDisk(d survey.Disk, i layout.Instance) Check {
	name, owner := "node "+strconv.Itoa(d.N), i.NodeOwner()
	if d.N == 0 {
		// Local storage has no bucket in its paths.
		name, owner = "local storage", path.Clean(i.CleanWALRoot())
	}
	what := "logs with files on " + name
	if d.Error != "" {
		return Check{what, "readable", d.Error, false}
	}
	var ids []string
	for _, o := range d.Owners {
		if o.Owner == owner {
			for _, l := range o.Logs {
				ids = append(ids, strconv.FormatInt(l.ID, 10))
			}
		}
	}
	return equal(what, "", strings.Join(ids, " "))
}
