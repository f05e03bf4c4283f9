package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
	"github.com/exactly-one/tenure/internal/printable"
)

// format is how a command prints.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatText, formatJSON:
		*f = format(s)
		return nil
	default:
		return fmt.Errorf("it must be text or json")
	}
}

func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// output is where and how a command prints. Each call of its methods writes
// whole lines at once; they may be called from several goroutines.
type output struct {
	format format

	mu sync.Mutex
	w  io.Writer
}

func (o *output) json() bool { return o.format == formatJSON }

// print writes the value as JSON on one line, or the lines, as the user wants it.
// What would end a line within one of them is escaped.
func (o *output) print(value any, lines ...string) error {
	if o.json() {
		return o.write(encode(value) + "\n")
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(printable.Text(line) + "\n")
	}
	return o.write(text.String())
}

// encode is a value as JSON that can be printed.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // what the program prints are texts, numbers and times
	}
	return string(printable.JSON(text))
}

// printText writes a value as JSON, or a text made for the width of the terminal.
func (o *output) printText(value any, text func(width int) string) error {
	if o.json() {
		return o.print(value, "")
	}
	return o.write(text(terminalWidth(o.w)))
}

// printTable writes a value as JSON, or as a table whose first row is its
// header, and which fits the terminal if there is one.
func (o *output) printTable(value any, rows [][]string) error {
	return o.printText(value, func(width int) string { return table(rows, width) })
}

// printProse writes a value as JSON, or as a table whose last column is sentences,
// which go on in the next line where a terminal's line ends.
func (o *output) printProse(value any, rows [][]string) error {
	return o.printTable(value, wrap(rows, terminalWidth(o.w)))
}

// write prints a text of whole lines. Its cells and names must have gone through
// [table], [flatten] or print, which keep foreign line ends out of it.
func (o *output) write(text string) error { return o.draw(printable.Lines(text)) }

// draw writes a text without escaping: with sequences that move the cursor of a terminal.
// All else in it must be printable.
func (o *output) draw(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := io.WriteString(o.w, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// timestamp is a time as the program prints it in JSON; null if it is zero.
type timestamp = record.Time

// shortTime is a time as people read it.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// orDash is what a table shows where there is nothing.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// dayTime is a time as people read it who compare it with a schedule: with its
// offset from UTC, to the second.
func dayTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
