package steps

import (
	"reflect"

	"runbook/internal/instance"
	"runbook/internal/plan"
)

// Language is what a plan may say: these step types, about one instance.
func Language() plan.Language {
	lang := plan.Language{Instance: reflect.TypeFor[instance.Settings]()}
	for _, t := range All() {
		lang.Steps = append(lang.Steps, t.StepType)
	}
	return lang
}
