package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"runbook/internal/secret"
)

// shortestMasked is the length below which a value is not masked: masking every
// "a" would garble counts and names, which an operator must be able to trust.
const shortestMasked = 4

// Redactor knows the secrets seen so far. It is safe for concurrent use.
type Redactor struct {
	mu    sync.RWMutex
	forms []string // every spelling of every secret, the longest first
}

// Add makes a value a secret from now on, in each of the spellings in which
// encoders and URLs may carry it.
func (r *Redactor) Add(value string) {
	if len(value) < shortestMasked {
		return
	}
	quoted := strconv.Quote(value)
	escaped, _ := json.Marshal(value) // escapes <, > and & too
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	jsonPlain := strings.TrimSpace(plain.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, form := range []string{
		value,
		strings.TrimSpace(value),
		quoted[1 : len(quoted)-1],
		string(escaped[1 : len(escaped)-1]),
		jsonPlain[1 : len(jsonPlain)-1],
		url.QueryEscape(value),
		url.PathEscape(value),
		url.UserPassword("", value).String()[1:],
		base64.StdEncoding.EncodeToString([]byte(value)),
		base64.URLEncoding.EncodeToString([]byte(value)),
	} {
		if len(form) >= shortestMasked && !slices.Contains(r.forms, form) {
			r.forms = append(r.forms, form)
		}
	}
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
}

// Mask replaces every known secret in data.
func (r *Redactor) Mask(data []byte) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, form := range r.forms {
		data = bytes.ReplaceAll(data, []byte(form), []byte(secret.Mask))
	}
	return data
}

// Writer returns a writer that masks what it passes on.
func (r *Redactor) Writer(w io.Writer) *MaskingWriter { return &MaskingWriter{redactor: r, w: w} }

// MaskingWriter masks known secrets, also those cut in two by separate writes:
// it holds back the end of a write while that may be the beginning of a secret.
type MaskingWriter struct {
	redactor *Redactor

	mu   sync.Mutex
	w    io.Writer
	held []byte
}

// Write reports all of p as written once it is taken over.
func (m *MaskingWriter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.redactor.Mask(append(m.held, p...))
	hold := m.redactor.openEnd(data)
	m.held = slices.Clone(data[len(data)-hold:])
	_, err := m.w.Write(data[:len(data)-hold])
	return len(p), err
}

// Flush writes what is held back: nothing more comes, or a person waits for it.
func (m *MaskingWriter) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.held
	m.held = nil
	_, err := m.w.Write(held)
	return err
}

// openEnd is the length of the longest end of data that begins a secret.
func (r *Redactor) openEnd(data []byte) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	longest := 0
	for _, form := range r.forms {
		for n := min(len(form)-1, len(data)); n > longest; n-- {
			if bytes.HasSuffix(data, []byte(form[:n])) {
				longest = n
				break
			}
		}
	}
	return longest
}
