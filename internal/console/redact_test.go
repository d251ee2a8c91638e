package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

const hidden = `p&<ss"w\ord/+ %é`

func TestEverySpellingOfASecretIsMasked(t *testing.T) {
	r := &Redactor{}
	r.Add(hidden)
	escaped, _ := json.Marshal(hidden)
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(hidden)
	for name, text := range map[string]string{
		"as it is":         hidden,
		"quoted by Go":     fmt.Sprintf("%q", hidden),
		"in JSON":          string(escaped),
		"in JSON for logs": plain.String(),
		"in a query":       "?key=" + url.QueryEscape(hidden),
		"in a path":        "/" + url.PathEscape(hidden) + "/",
		"in a URL":         (&url.URL{Scheme: "http", User: url.UserPassword("user", hidden), Host: "host"}).String(),
		"in base64":        base64.StdEncoding.EncodeToString([]byte(hidden)),
	} {
		t.Run(name, func(t *testing.T) {
			got := string(r.Mask([]byte("before " + text + " after")))
			if !strings.Contains(got, "********") || strings.Contains(got, "ord") || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(hidden))) {
				t.Errorf("%q became %q", text, got)
			}
		})
	}
}

func TestASecretCutInTwoByWritesIsMasked(t *testing.T) {
	text := "one sesame-open-sesame two sesame-open-sesamesesame-open-sesame three sesame-op four\n"
	want := "one ******** two **************** three sesame-op four\n"
	for cut := range len(text) {
		for next := cut; next < len(text); next++ {
			var out bytes.Buffer
			r := &Redactor{}
			r.Add("sesame-open-sesame")
			w := r.Writer(&out)
			for _, part := range []string{text[:cut], text[cut:next], text[next:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Fatalf("cut at %d and %d: %q", cut, next, out.String())
			}
		}
	}
}

func TestWhatCannotBeginASecretIsNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	r := &Redactor{}
	r.Add("sesame")
	w := r.Writer(&out)
	fmt.Fprint(w, "type the root path: ")
	if out.String() != "type the root path: " {
		t.Errorf("a prompt is held back: %q", out.String())
	}
}

func TestShortValuesAreNotMasked(t *testing.T) {
	r := &Redactor{}
	r.Add("16")
	r.Add("")
	if got := string(r.Mask([]byte("16 logs"))); got != "16 logs" {
		t.Errorf("got %q", got)
	}
}
