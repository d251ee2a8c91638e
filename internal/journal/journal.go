// Package journal keeps a run's records on disk: the plan as applied, the
// resolved inputs with secrets masked, events, before-images, the final report.
package journal

// Run is one run's folder.
type Run struct{ dir string }
