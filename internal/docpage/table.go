package docpage

import (
	"slices"
	"strings"
)

// SetLine returns a table with a line in place of the first one that same reports to
// be about the same, or after the others. A table with another header begins anew.
func SetLine(table, header, line string, same func(old string) bool) string {
	if !strings.HasPrefix(table, header) {
		table = header
	}
	lines := strings.Split(table, "\n")
	titles := strings.Count(header, "\n") + 1
	if i := slices.IndexFunc(lines[titles:], same); i >= 0 {
		lines[titles+i] = line
	} else {
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// HasFirst returns a function that reports whether the first cell of a line is a value.
func HasFirst(value string) func(line string) bool {
	return func(line string) bool { return strings.HasPrefix(line, "| "+value+" | ") }
}
