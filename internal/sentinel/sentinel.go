// Package sentinel makes errors with categories for errors.Is.
package sentinel

type sentinel struct {
	parent error
	text   string
}

// New returns an error with its own text. It matches parent and every error that parent
// matches.
func New(parent error, text string) error { return &sentinel{parent, text} }

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Unwrap() error { return e.parent }

// Is reports whether err itself, and not a wrapped error, was made by New.
func Is(err error) bool {
	_, ok := err.(*sentinel) //nolint:errorlint // only this link of the chain matters
	return ok
}
