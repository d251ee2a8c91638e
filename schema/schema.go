// Package schema holds the JSON schema of plan files, for editors and for
// `runbook schema`. It is generated from the step types (steps/schema_test.go
// proves that it is current) and never edited by hand.
package schema

import _ "embed"

// Plan is the schema (draft 2020-12) of a plan file.
//
//go:embed plan.schema.json
var Plan []byte
