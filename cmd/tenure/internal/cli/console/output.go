// Package console is how commands speak to the caller: exit codes and errors,
// text, tables and JSON, questions, logs and signals.
package console

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

// Format is how a command prints.
type Format string

// The formats of output.
const (
	FormatText Format = "text"
	FormatJSON Format = "json"
)

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case FormatText, FormatJSON:
		*f = Format(s)
		return nil
	default:
		return fmt.Errorf("it must be text or json")
	}
}

func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Output is where and how a command prints. Each call of its methods writes
// whole lines at once; they may be called from several goroutines.
type Output struct {
	Format Format

	mu     sync.Mutex
	Writer io.Writer
}

// JSON reports whether the user wants JSON.
func (o *Output) JSON() bool { return o.Format == FormatJSON }

// Print writes the value as JSON on one line, or the lines, as the user wants it.
// What would end a line within one of them is escaped.
func (o *Output) Print(value any, lines ...string) error {
	if o.JSON() {
		return o.WriteText(Encode(value) + "\n")
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(printable.Text(line) + "\n")
	}
	return o.WriteText(text.String())
}

// Encode is a value as JSON that can be printed.
func Encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // what the program prints are texts, numbers and times
	}
	return string(printable.JSON(text))
}

// PrintText writes a value as JSON, or a text made for the width of the terminal.
func (o *Output) PrintText(value any, text func(width int) string) error {
	if o.JSON() {
		return o.Print(value, "")
	}
	return o.WriteText(text(terminalWidth(o.Writer)))
}

// PrintTable writes a value as JSON, or as a table whose first row is its
// header, and which fits the terminal if there is one.
func (o *Output) PrintTable(value any, rows [][]string) error {
	return o.PrintText(value, func(width int) string { return Table(rows, width) })
}

// PrintProse writes a value as JSON, or as a table whose last column is sentences,
// which go on in the next line where a terminal's line ends.
func (o *Output) PrintProse(value any, rows [][]string) error {
	return o.PrintTable(value, wrap(rows, terminalWidth(o.Writer)))
}

// WriteText prints a text of whole lines. Its cells and names must have gone through
// [Table], [Flatten] or print, which keep foreign line ends out of it.
func (o *Output) WriteText(text string) error { return o.Draw(printable.Lines(text)) }

// Draw writes a text without escaping: with sequences that move the cursor of a terminal.
// All else in it must be printable.
func (o *Output) Draw(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := io.WriteString(o.Writer, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// Timestamp is a time as the program prints it in JSON; null if it is zero.
type Timestamp = record.Time

// ShortTime is a time as people read it.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// OrDash is what a table shows where there is nothing.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// DayTime is a time as people read it who compare it with a schedule: with its
// offset from UTC, to the second.
func DayTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// Count is a number as a cell of a table.
func Count(n int64) string { return strconv.FormatInt(n, 10) }
