package plan

// Codes of diagnostics. They are stable: scripts and people look them up. Each
// is explained in docs/plan-language.md; a test keeps this list and that table equal.
const (
	// The file.
	codeFileUnreadable = "file.unreadable"
	codeFileKind       = "file.not-a-file"
	codeFileSize       = "file.too-big"
	codeFileEncoding   = "file.not-utf8"
	codeFileEmpty      = "file.empty"

	// YAML.
	codeYAMLSyntax    = "yaml.syntax"
	codeYAMLTab       = "yaml.tab"
	codeYAMLDocuments = "yaml.several-documents"
	codeYAMLDuplicate = "yaml.duplicate-key"
	codeYAMLKey       = "yaml.key"
	codeYAMLAlias     = "yaml.alias"
	codeYAMLMerge     = "yaml.merge"
	codeYAMLTag       = "yaml.tag"
	codeYAMLDepth     = "yaml.too-deep"

	// The shape of a plan.
	codeAPIVersion   = "plan.api-version"
	codeKind         = "plan.kind"
	codeName         = "plan.name"
	codeMissing      = "plan.missing-field"
	codeUnknownField = "plan.unknown-field"
	codeType         = "plan.wrong-type"
	codeValue        = "plan.value-not-allowed"
	codeNoSteps      = "plan.no-steps"
	codeTooMany      = "plan.too-many"
	codeSchema       = "plan.schema"

	// Parameters.
	codeParamName     = "param.name"
	codeParamDefault  = "param.default"
	codeParamRequired = "param.required"
	codeParamMissing  = "param.no-value"
	codeParamUnknown  = "param.unknown"
	codeParamValue    = "param.value"
	codeParamUnused   = "param.unused"
	codeSetForm       = "param.set-form"

	// Steps and facts.
	codeStepID       = "step.id"
	codeStepTwice    = "step.duplicate-id"
	codeStepType     = "step.unknown-type"
	codeFactMissing  = "fact.missing"
	codeFactEnded    = "fact.ended"
	codeFactTwice    = "fact.twice"
	codeTargetDiffer = "target.contradiction"

	// Expressions.
	codeExprSyntax  = "expr.syntax"
	codeExprPlace   = "expr.not-here"
	codeExprEnv     = "expr.env"
	codeExprName    = "expr.unknown-name"
	codeExprParam   = "expr.unknown-param"
	codeExprStep    = "expr.unknown-step"
	codeExprLater   = "expr.later-step"
	codeExprOwn     = "expr.own-step"
	codeExprOutput  = "expr.unknown-output"
	codeExprType    = "expr.type"
	codeExprLimit   = "expr.limit"
	codeExprFailed  = "expr.failed"
	codeExprWrapped = "expr.wrapped"

	// Secrets.
	codeSecretClear  = "secret.in-clear"
	codeSecretSource = "secret.source"
	codeSecretExpr   = "secret.expression"
)
