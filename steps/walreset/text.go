package walreset

import (
	"fmt"
	"strings"
)

// shown is how many names of a list a message spells out.
const shown = 5

// some spells out the first names of a list and says how many more there are.
func some[T any](items []T) string {
	if len(items) <= shown+1 {
		return joined(items)
	}
	return fmt.Sprintf("%s and %d more", joined(items[:shown]), len(items)-shown)
}

func joined[T any](items []T) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	return strings.Join(texts, ", ")
}

// pluralOf is "1 log", "2 logs", "2 directories".
func pluralOf[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(noun, "key") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// pluralNot is "1 log-store node does not", "2 log-store nodes do not".
func pluralNot(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " does not"
	}
	return fmt.Sprintf("%d %ss do not", n, noun)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < 4; i++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[i])
}
