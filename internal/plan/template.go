package plan

import "strings"

// template is a scalar that holds expressions.
type template struct {
	parts []part
}

// part is literal text or an expression.
type part struct {
	text string
	expr *expression
}

// whole is the expression when the scalar is nothing but one expression, whose
// type it then keeps.
func (t *template) whole() *expression {
	if len(t.parts) == 1 {
		return t.parts[0].expr
	}
	return nil
}

// references lists what the expressions name.
func (t *template) references() []reference {
	var out []reference
	for _, p := range t.parts {
		if p.expr != nil {
			out = append(out, p.expr.refs...)
		}
	}
	return out
}

// rawPart is a part before it is compiled; offsets are in characters.
type rawPart struct {
	text   string
	isExpr bool
	offset int // of the first character of text
}

// splitTemplate takes a scalar apart: ${...} is an expression, $${ is the text ${.
// When an expression is not closed, open is its offset, otherwise -1.
func splitTemplate(text string) (parts []rawPart, open int) {
	runes := []rune(text)
	var literal strings.Builder
	start := 0
	flush := func(next int) {
		if literal.Len() > 0 {
			parts = append(parts, rawPart{text: literal.String(), offset: start})
			literal.Reset()
		}
		start = next
	}
	for i := 0; i < len(runes); {
		switch rest := runes[i:]; {
		case hasPrefix(rest, "$${"):
			literal.WriteString("${")
			i += 3
		case hasPrefix(rest, "${"):
			end := closingBrace(runes, i+2)
			if end < 0 {
				return nil, i
			}
			flush(end + 1)
			parts = append(parts, rawPart{text: string(runes[i+2 : end]), isExpr: true, offset: i + 2})
			i = end + 1
		default:
			literal.WriteRune(runes[i])
			i++
		}
	}
	flush(len(runes))
	return parts, -1
}

func hasPrefix(runes []rune, prefix string) bool {
	return len(runes) >= len(prefix) && string(runes[:len(prefix)]) == prefix
}

// closingBrace finds the brace that ends an expression, past braces of mappings
// and past string literals. It returns -1 when there is none.
func closingBrace(runes []rune, from int) int {
	depth := 0
	for i := from; i < len(runes); i++ {
		switch runes[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '\'', '"':
			if i = stringEnd(runes, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// stringEnd finds the last character of the string literal that begins at i.
func stringEnd(runes []rune, i int) int {
	raw := i > 0 && (runes[i-1] == 'r' || runes[i-1] == 'R')
	quote := string(runes[i])
	if triple := strings.Repeat(quote, 3); hasPrefix(runes[i:], triple) {
		quote = triple
	}
	for j := i + len(quote); j < len(runes); j++ {
		if runes[j] == '\\' && !raw {
			j++
			continue
		}
		if hasPrefix(runes[j:], quote) {
			return j + len(quote) - 1
		}
	}
	return -1
}
