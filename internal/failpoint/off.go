//go:build !failpoints

// Package failpoint marks the places between two effects on the outside world.
// In the product every mark compiles to nothing; a binary built with the tag
// "failpoints" can be told to die at the n-th one, which is how the crash tests
// reach every boundary.
package failpoint

// Hit marks a boundary that was just passed: the effect named has happened.
func Hit(string) {}
