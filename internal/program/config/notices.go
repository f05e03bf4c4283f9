package config

import (
	"fmt"
)

// Notices returns what is not an error in a file but worth a line each: tables and
// keys that this version of the program does not use, conditions of alerts that
// probably do not mean what they seem to, and times that do not fit a default.
// hasFlag reports whether any command has a flag of this name: a key whose flag no
// command has is not used.
func (f *File) Notices(hasFlag func(name string) bool) []string {
	if f == nil {
		return nil
	}
	notices := append(f.unused(hasFlag), f.DoubtfulAlerts()...)
	if contradiction := f.leaseTooShort(); contradiction != "" {
		notices = append(notices, fmt.Sprintf("%s: %s; the lease is the default, unless a flag or a variable sets it", f.name, contradiction))
	}
	return notices
}

// unused reports what is not used: a table if none of its keys is used, else the
// key.
func (f *File) unused(hasFlag func(name string) bool) []string {
	used := func(s setting) bool { return s.key.evidence != "" && hasFlag(s.key.evidence) }
	settings := f.ordered()
	usedTables := map[string]bool{}
	for _, s := range settings {
		usedTables[s.header()] = usedTables[s.header()] || used(s)
	}
	var notices []string
	reported := map[string]bool{}
	for _, s := range settings {
		what, at := s.path, s.at
		if !usedTables[s.header()] {
			what, at = s.header(), f.tables[s.table]
		}
		if !used(s) && !reported[what] {
			reported[what] = true
			notices = append(notices, fmt.Sprintf("%s:%d: %s is not used by this version", f.name, at.line, what))
		}
	}
	return notices
}
