package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/exactly-one/tenure"
)

// Error is one fault of a file. It matches [tenure.ErrInvalidConfig].
type Error struct {
	File    string
	Line    int // counted from 1; 0 if the whole file is meant
	Column  int // in characters, counted from 1
	Message string
}

// Error is one line: file:line:column: message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Unwrap makes the error match its category.
func (e *Error) Unwrap() error { return tenure.ErrInvalidConfig }

// maxReported is how many errors are reported for one file; a file of another kind has
// one in each line.
const maxReported = 25

// joined is all errors as one, in the order of the file, each on its line; nil
// if there are none.
func joined(faults []*Error) error {
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for _, fault := range faults[:min(len(faults), maxReported)] {
		all = append(all, fault)
	}
	if more := len(faults) - maxReported; more > 0 {
		all = append(all, &Error{File: faults[0].File, Message: fmt.Sprintf("and %d more errors", more)})
	}
	return errors.Join(all...)
}
