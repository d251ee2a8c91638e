package plan

import "strings"

// nearest returns the candidate that name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates { // bucketname, rootPathPrefix
		if lower := strings.ToLower(c); len(c) >= 4 && strings.HasPrefix(strings.ToLower(name), lower) {
			return c
		}
	}
	return ""
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	const longest = 64 // names are short; what is longer is not a typo
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

// didYouMean is a hint that names the nearest candidate, or else all of them.
func didYouMean(name string, candidates []string) string {
	if n := nearest(name, candidates); n != "" {
		return "write " + n
	}
	if len(candidates) == 0 {
		return ""
	}
	return "use one of: " + strings.Join(candidates, ", ")
}
