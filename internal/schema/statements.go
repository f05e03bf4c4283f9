package schema

import (
	"slices"
	"strings"
)

// statements splits a migration into its statements, without comments before them. A
// semicolon at the end of a line ends a statement outside the body of a function.
func statements(migration string) []string {
	var (
		all     []string
		current strings.Builder
		inBody  bool
	)
	for line := range strings.Lines(migration) {
		if current.Len() == 0 && (strings.TrimSpace(line) == "" || strings.HasPrefix(line, "--")) {
			continue
		}
		current.WriteString(line)
		if strings.Count(line, FunctionQuote)%2 == 1 {
			inBody = !inBody
		}
		if !inBody && strings.HasSuffix(strings.TrimSpace(line), ";") {
			all = append(all, strings.TrimSpace(current.String()))
			current.Reset()
		}
	}
	return all
}

// all returns the statements of all steps of a feature. The core also has the table of
// versions.
func (f *Feature) statements() []string {
	var all []string
	if f.Name == Core {
		all = append(all, strings.TrimSpace(CreateVersions))
	}
	for _, step := range f.Steps {
		all = append(all, statements(step.Up)...)
	}
	return all
}

// creates returns the name of the relation or function created by a statement, or an empty
// text.
func creates(statement string) string {
	for _, begin := range []string{
		"CREATE TABLE IF NOT EXISTS {", "CREATE TABLE {", "CREATE UNLOGGED TABLE {", "CREATE SEQUENCE {", "CREATE VIEW {", "CREATE FUNCTION {", "CREATE OR REPLACE FUNCTION {",
	} {
		if rest, found := strings.CutPrefix(statement, begin); found {
			name, _, _ := strings.Cut(rest, "}")
			return name
		}
	}
	return ""
}

// objects returns the names of the relations and functions of a feature, in the order of
// their creation by its migrations.
func (f *Feature) objects() []string {
	var names []string
	for _, statement := range f.statements() {
		if name := creates(statement); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// create returns the last statement to create a relation or function.
func (f *Feature) create(object string) string {
	last := ""
	for _, statement := range f.statements() {
		if creates(statement) == object {
			last = statement
		}
	}
	return last
}

// body returns the template of the body of a function.
func (f *Feature) body(function string) string {
	_, rest, _ := strings.Cut(f.create(function), "AS "+FunctionQuote)
	body, _, _ := strings.Cut(rest, FunctionQuote)
	return body
}
