// Package schema has the common parts of Tenure's features in the schema of an
// installation: names of tables, and for each feature its tables, its versions and the
// privileges on its tables.
package schema

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Core is the name of the feature of every installation: elections and the cluster.
const Core = "core"

// All means every feature where names of features are given.
const All = "all"

// Step is one migration of a feature.
type Step struct {
	Up, Down string
	// UsableFrom is the oldest version with programs that also work with this step; 0 if a
	// program must know the step.
	UsableFrom int
}

// Digest identifies the statements of the migration. Comments before them do not matter.
func (s Step) Digest() string {
	sum := sha256.Sum256([]byte(strings.Join(statements(s.Up), "\n")))
	return hex.EncodeToString(sum[:])
}

// Privilege is a required privilege of a database user.
type Privilege struct {
	Allowed string // separated by commas
	Kind    string // of object: SCHEMA, TABLE, SEQUENCE or FUNCTION
	Object  string
}

// OnTable is a privilege on a table or a view.
func OnTable(allowed, table string) Privilege { return Privilege{allowed, "TABLE", table} }

// Feature is a part of Tenure with separate tables. Its version is the number of its steps
// taken.
type Feature struct {
	Name     string
	Requires []*Feature // must be there first
	Steps    []Step
	Parts    []Part // how its tables look after the last step
	// Work are the privileges of users of the feature, Compaction the privileges of the
	// user for the removal of its old rows.
	Work, Compaction []Privilege
}

// Newest is the version made by this program.
func (f *Feature) Newest() int { return len(f.Steps) }

// registered are the features of this program, each after its requirements.
var registered []*Feature

// Register adds a feature to this program and returns it. It is called while packages are
// initialized.
func Register(f Feature) *Feature {
	registered = append(registered, &f)
	return &f
}

// Registered returns the features of this program other than the core, each after its
// requirements, and else by name.
func Registered() []*Feature {
	var all []*Feature
	var add func(f *Feature)
	add = func(f *Feature) {
		for _, required := range f.Requires {
			add(required)
		}
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	sorted := slices.SortedFunc(slices.Values(registered), func(a, b *Feature) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range sorted {
		add(f)
	}
	return all
}

// Find returns the registered features with the given names, each after its requirements.
// [All] means all of them; [Core] adds none.
func Find(names ...string) ([]*Feature, error) {
	wanted := map[*Feature]bool{}
	var want func(f *Feature)
	want = func(f *Feature) {
		wanted[f] = true
		for _, required := range f.Requires {
			want(required)
		}
	}
	all := Registered()
	for _, name := range names {
		found := name == All || name == Core
		for _, f := range all {
			if name == All || name == f.Name {
				want(f)
				found = true
			}
		}
		if !found {
			return nil, &UnknownError{name}
		}
	}
	return slices.DeleteFunc(all, func(f *Feature) bool { return !wanted[f] }), nil
}

// UnknownError is the error for a name without a feature in this program.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	names := []string{Core}
	for _, f := range Registered() {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("no feature is called %q; there are: %s, or %s", e.Name, strings.Join(names, ", "), All)
}

// Steps reads the migrations of a feature from a folder, in the order of their names. The
// names end in .up.sql and .down.sql. It panics if one is missing: they are embedded.
func Steps(files embed.FS, folder string) []Step {
	names, err := fs.Glob(files, folder+"/*.up.sql")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprint("no migrations are embedded: ", err))
	}
	read := func(name string) string {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	var steps []Step
	last := ""
	for _, up := range names { // Glob sorts them
		number, _, parted := strings.Cut(strings.TrimSuffix(up, ".up.sql"), "_")
		if parted && number == last {
			steps[len(steps)-1].Up += "\n" + read(up)
			continue
		}
		last = number
		steps = append(steps, Step{Up: read(up), Down: read(number + ".down.sql")})
	}
	return steps
}
