package plan

import "slices"

// secret checks a secret: a reference, or a text in clear, which is reported
// and never shown.
func (k *checker) secret(n *node, s *shape, label string, sc scope) {
	example := label + ": {valueFrom: {env: NAME}}"
	switch {
	case n.isTemplate():
		k.error(n.pos, codeSecretExpr, "%s: a secret cannot come from an expression, which would show it", label).
			hint("write %s", example)
	case n.kind == nodeString && n.text == "":
	case n.kind == nodeString:
		if !slices.ContainsFunc(k.secrets, func(o *node) bool { return o.pos == n.pos }) { // an alias
			k.secrets = append(k.secrets, n)
		}
		k.warn(n.pos, codeSecretClear, "%s is written in clear", label).hint("write %s", example)
	case n.kind == nodeMap:
		k.secretSource(n, s.elem, label, sc)
	default:
		k.error(n.pos, codeType, "%s: want a secret, found %s", label, n.kindName()).hint("write %s", example)
	}
}

func (k *checker) secretSource(n *node, source *shape, label string, sc scope) {
	for _, e := range n.entries {
		if e.key == "valueFrom" {
			continue
		}
		// The key is shown only when it is a misspelt one: it may be part of the secret.
		d := k.error(e.keyPos, codeUnknownField, "%s has a field that does not exist", label)
		d.hint("write %s: {valueFrom: {env: NAME}}, or quote the text", label)
		if nearest(e.key, []string{"valueFrom"}) != "" {
			d.Message = label + " has no field " + e.key
			d.hint("write valueFrom")
		}
	}
	from := n.get("valueFrom")
	if from == nil {
		if len(n.entries) == 0 {
			k.error(n.pos, codeSecretSource, "%s names no source", label).hint("write %s: {valueFrom: {env: NAME}}", label)
		}
		return
	}
	if !k.isMapping(from, "valueFrom") {
		return
	}
	k.object(from, source, "valueFrom", sc)
	names := source.names()
	var given []string
	for _, e := range from.entries {
		if slices.Contains(names, e.key) {
			given = append(given, e.key)
		}
		if e.value.kind == nodeString && e.value.text == "" {
			k.error(e.value.pos, codeSecretSource, "%s: %s is empty", label, e.key).hint("name it, or remove the line")
		}
	}
	if len(given) != 1 && len(given) == len(from.entries) {
		k.error(from.pos, codeSecretSource, "%s: want exactly one source, found %d", label, len(given)).
			hint("give one of env, file and secretKeyRef")
	}
}
