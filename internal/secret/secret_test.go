package secret_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runbook/internal/secret"
)

func TestAValueIsNeverPrinted(t *testing.T) {
	const clear = "s3cr3t-in-clear"
	v := secret.Value{Literal: clear}
	marshalled, err := json.Marshal(map[string]any{"key": v, "pointer": &v})
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{
		"%v": fmt.Sprintf("%v", v), "%+v": fmt.Sprintf("%+v", v), "%#v": fmt.Sprintf("%#v", v), "String": v.String(),
		"inside a struct": fmt.Sprintf("%+v", struct{ Key secret.Value }{v}),
		"JSON":            string(marshalled),
	} {
		if strings.Contains(text, clear) {
			t.Errorf("%s shows the value: %s", form, text)
		}
	}
}

func TestWhereAValueComesFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from a file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("A_KEY", "from the environment")
	for _, c := range []struct {
		name, written, want, err string
	}{
		{name: "a literal", written: `"as it is"`, want: "as it is"},
		{name: "an environment variable", written: `{"valueFrom":{"env":"A_KEY"}}`, want: "from the environment"},
		{name: "a file, less its last line end", written: `{"valueFrom":{"file":"` + file + `"}}`, want: "from a file"},
		{name: "a variable that is not set", written: `{"valueFrom":{"env":"NO_SUCH_KEY"}}`, err: "NO_SUCH_KEY is not set"},
		{name: "a file that is not there", written: `{"valueFrom":{"file":"/no/such/file"}}`, err: "no such file"},
		{name: "a Kubernetes secret without Kubernetes", written: `{"valueFrom":{"secretKeyRef":{"name":"minio","key":"k"}}}`, err: "needs instance.kubernetes"},
		{name: "no source at all", written: `{"valueFrom":{}}`, err: "names no source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v secret.Value
			if err := json.Unmarshal([]byte(c.written), &v); err != nil {
				t.Fatal(err)
			}
			got, err := v.Resolve(t.Context(), nil)
			switch {
			case c.err == "" && (err != nil || got != c.want):
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v; want an error with %q", err, c.err)
			}
		})
	}
}
