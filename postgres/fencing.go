package postgres

import "github.com/exactly-one/tenure"

// fencing ends transactions that keep new terms waiting.
type fencing struct{}

func (f *fencing) init(*session)             {}
func (f *fencing) end(*session, tenure.Role) {}
func (f *fencing) abort()                    {}
func (f *fencing) wait()                     {}
