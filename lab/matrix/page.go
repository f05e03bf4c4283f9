package main

import (
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

var header = []string{
	"| server | version | mode | " + strings.Join(columns, " | ") + " | last run |",
	strings.Repeat("|---", 4+len(columns)) + "|",
}

// row is a row of the table. A server and a mode have one.
type row struct {
	title, version, mode string
	cells                map[string]string // by column
	at                   time.Time
}

// line is the row on the page. A suite that did not run keeps what the old line says.
func (r row) line(old string) string {
	values := []string{r.title, r.version, r.mode}
	before := strings.Split(strings.Trim(old, "| "), " | ")
	for i, column := range columns {
		value, ok := r.cells[column]
		switch {
		case ok:
		case len(before) == len(columns)+4:
			value = before[3+i]
		default:
			value = "–"
		}
		values = append(values, value)
	}
	return "| " + strings.Join(append(values, r.at.UTC().Format(time.DateOnly)), " | ") + " |"
}

// writeRow puts a row on the page, in place of the last one of its server and mode.
func writeRow(page string, r row) error {
	return docpage.Update(page, "test-matrix", func(table string) string { return withRow(table, r) })
}

// withRow returns the table with a row.
func withRow(table string, r row) string {
	lines := header
	if table != "" {
		lines = strings.Split(table, "\n")
	}
	replaced := false
	lines = slices.Clone(lines)
	for i, line := range lines {
		if key(line) == key(r.line("")) {
			lines[i], replaced = r.line(line), true
		}
	}
	if !replaced {
		lines = append(lines, r.line(""))
	}
	return strings.Join(lines, "\n")
}

// key is what names a line of the table: its server and its mode.
func key(line string) string {
	cells := strings.Split(line, " | ")
	if len(cells) < 3 {
		return line
	}
	return cells[0] + " | " + cells[2]
}
