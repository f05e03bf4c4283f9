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
func row(title, version, mode string, cells map[string]string, at time.Time) string {
	values := []string{title, version, mode}
	for _, column := range columns {
		value, ok := cells[column]
		if !ok {
			value = "–"
		}
		values = append(values, value)
	}
	return "| " + strings.Join(append(values, at.UTC().Format(time.DateOnly)), " | ") + " |"
}

// writeRow puts a row on the page, in place of the last one of its server and mode.
func writeRow(page, row string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := withRow(string(content), row)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

// withRow returns the page with a row.
func withRow(page, row string) (string, error) {
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
		if key(line) == key(row) {
			lines[i], replaced = row, true
		}
	}
	if !replaced {
		lines = append(lines, row)
	}
	return before + begin + "\n\n" + strings.Join(lines, "\n") + "\n\n" + end + after, nil
}

// key is what names a row: its server and its mode.
func key(row string) string {
	cells := strings.Split(row, " | ")
	if len(cells) < 3 {
		return row
	}
	return cells[0] + " | " + cells[2]
}
