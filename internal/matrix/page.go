package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The comments around the table on the page.
const (
	begin = "<!-- written by make test-matrix -->"
	end   = "<!-- end -->"
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
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := withRow(string(content), r)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

// withRow returns the page with a row.
func withRow(page string, r row) (string, error) {
	before, rest, opened := strings.Cut(page, begin+"\n")
	table, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("the page lacks the lines %q and %q", begin, end)
	}
	lines := header
	if table = strings.TrimSpace(table); table != "" {
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
	return before + begin + "\n\n" + strings.Join(lines, "\n") + "\n\n" + end + after, nil
}

// key is what names a line of the table: its server and its mode.
func key(line string) string {
	cells := strings.Split(line, " | ")
	if len(cells) < 3 {
		return line
	}
	return cells[0] + " | " + cells[2]
}
