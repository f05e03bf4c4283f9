package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/link"
)

// linkSubjects are the possible subjects of a link.
var linkSubjects = []string{"role", "node", "alert"}

const linkTables = "links."

var linkKeys = func() []key {
	var all []key
	for _, on := range linkSubjects {
		all = append(all, key{path: linkTables + on + ".*", kind: text, evidence: userEvidence, check: linkOn(on), note: "none"})
	}
	return all
}()

// linkOn checks the address of a link.
func linkOn(on string) func(any) error {
	return func(value any) error {
		address, _ := value.(string)
		return plainly(link.Template{On: on, Name: "a link", Template: address}.Check())
	}
}

// plainly removes the mention of an invalid configuration from an error: the file names
// it.
func plainly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), tenure.ErrInvalidConfig.Error()+": "))
}

// Links are the links of the file, sorted by their subjects and names.
func (f *File) Links() []link.Template {
	if f == nil {
		return nil
	}
	var all []link.Template
	for _, on := range linkSubjects {
		named := f.named(linkTables + on + ".")
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, link.Template{On: on, Name: name, Template: named[name]})
		}
	}
	return all
}

// checkLinks checks the names and the number of links.
func (r *reader) checkLinks() {
	for _, on := range linkSubjects {
		table := linkTables + on
		r.checkNames(table, func(name string) error {
			return plainly(link.Template{On: on, Name: name, Template: "https://example.com"}.Check())
		})
		if n := len(r.file.named(table + ".")); n > link.Most {
			r.fault(r.file.tables[table], "%s has %d links; it must have at most %d", table, n, link.Most)
		}
	}
}
