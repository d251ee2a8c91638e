// Package secret holds values that must never be printed. A secret enters the
// program as a reference (an environment variable, a file, a Kubernetes secret)
// and is read only where a client is built, so that plans, events and journals
// can carry the reference and nothing else.
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Mask replaces a secret's value wherever one would be shown.
const Mask = "********"

// Value is a reference to a secret, or a literal written into the plan (which
// the validator warns about). The zero Value is "not set".
type Value struct {
	Literal   string
	ValueFrom *Source
}

// Source says where a secret's value comes from; exactly one field is set.
type Source struct {
	Env          string  `json:"env,omitempty" doc:"name of an environment variable"`
	File         string  `json:"file,omitempty" doc:"path of a file; one trailing newline is removed"`
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty" doc:"key of a Kubernetes secret in the instance's namespace"`
}

// KeyRef names one key of a Kubernetes secret.
type KeyRef struct {
	Name string `json:"name" doc:"name of the secret" required:"true"`
	Key  string `json:"key" doc:"key in the secret" required:"true"`
}

// Resolver reads what this package cannot: a Kubernetes secret.
type Resolver interface {
	SecretKey(ctx context.Context, ref KeyRef) (string, error)
}

// IsSet reports whether the plan gave anything.
func (v Value) IsSet() bool { return v.Literal != "" || v.ValueFrom != nil }

// String is the reference, never the value.
func (v Value) String() string {
	switch s := v.ValueFrom; {
	case s == nil && v.Literal == "":
		return ""
	case s == nil:
		return Mask
	case s.Env != "":
		return "env " + s.Env
	case s.File != "":
		return "file " + s.File
	case s.SecretKeyRef != nil:
		return "secret " + s.SecretKeyRef.Name + "/" + s.SecretKeyRef.Key
	default:
		return ""
	}
}

// GoString keeps %#v from showing a literal.
func (v Value) GoString() string { return "secret.Value(" + v.String() + ")" }

// MarshalJSON writes the reference; a literal is masked.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.ValueFrom != nil {
		return json.Marshal(map[string]any{"valueFrom": v.ValueFrom})
	}
	return json.Marshal(v.String())
}

// UnmarshalJSON accepts a plain string or {valueFrom: {...}}.
func (v *Value) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &v.Literal); err == nil {
		return nil
	}
	var ref struct {
		ValueFrom *Source `json:"valueFrom"`
	}
	if err := json.Unmarshal(data, &ref); err != nil {
		return err
	}
	v.ValueFrom = ref.ValueFrom
	return nil
}

// Resolve reads the value. resolver may be nil when no Kubernetes is configured.
func (v Value) Resolve(ctx context.Context, resolver Resolver) (string, error) {
	switch s := v.ValueFrom; {
	case s == nil:
		return v.Literal, nil
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", s.Env)
		}
		return value, nil
	case s.File != "":
		data, err := os.ReadFile(s.File)
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
	case s.SecretKeyRef != nil:
		if resolver == nil {
			return "", fmt.Errorf("%s needs instance.kubernetes to be set", v)
		}
		return resolver.SecretKey(ctx, *s.SecretKeyRef)
	default:
		return "", fmt.Errorf("valueFrom names no source: give env, file or secretKeyRef")
	}
}
