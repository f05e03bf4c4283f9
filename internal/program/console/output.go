// Package console implements the commands' interface to the user: exit codes
// and errors, text, tables and JSON, confirmations, logs and signals.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/record"
)

// Format is an output format.
type Format string

// The formats of output.
const (
	FormatText Format = "text"
	FormatWide Format = "wide" // text with all columns of tables
	FormatJSON Format = "json"
)

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case FormatText, FormatWide, FormatJSON:
		*f = Format(s)
		return nil
	default:
		return fmt.Errorf("it must be text, wide or json")
	}
}

func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Output is where and how a command prints. Each call of its methods writes
// whole lines in one piece. It is safe for concurrent use.
type Output struct {
	Format Format
	Color  ColorMode

	mu     sync.Mutex
	Writer io.Writer
}

// JSON reports whether the output is JSON.
func (o *Output) JSON() bool { return o.Format == FormatJSON }

// Print writes the value as JSON on one line, or the lines. Line ends within a
// line are escaped.
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

// Encode returns a value as printable JSON.
func Encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values are texts, numbers and times
	}
	return string(printable.JSON(text))
}

// PrintText writes a value as JSON, or the page of fill for the terminal's width.
func (o *Output) PrintText(value any, fill func(*Page)) error {
	if o.JSON() {
		return o.Print(value, "")
	}
	return o.Draw(o.Render(terminalWidth(o.Writer), fill))
}

// Render returns the page of fill for a width. Tables with all columns have any width.
func (o *Output) Render(width int, fill func(*Page)) string {
	page := o.page(width)
	if page.all {
		page.tables = Unlimited
	}
	fill(page)
	return page.text.String()
}

// PrintTable writes a value as JSON, or a table fitted to the terminal. The first row is
// the header. It omits columns as [Page.Table] does.
func (o *Output) PrintTable(value any, rows [][]string, omit ...string) error {
	return o.PrintText(value, func(page *Page) { page.Table(rows, omit...) })
}

// PrintProse writes a value as JSON, or the table of [Page.Prose].
func (o *Output) PrintProse(value any, rows [][]string, omit ...string) error {
	return o.PrintText(value, func(page *Page) { page.Prose(rows, omit...) })
}

// WriteText prints a text of whole lines. External texts in it must have gone through
// [Flatten] or print, which escape line ends.
func (o *Output) WriteText(text string) error { return o.Draw(printable.Lines(text)) }

// Draw writes a text unescaped, with sequences to move the cursor of a terminal.
// Everything else in it must be printable.
func (o *Output) Draw(text string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := io.WriteString(o.Writer, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// Timestamp is a time in JSON output; null if it is zero.
type Timestamp = record.Time

// ShortTime formats a time for text output: in RFC 3339 with milliseconds and the local
// offset from UTC.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02T15:04:05.000Z07:00")
}

// OrDash returns a dash for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// DayTime formats a time to the second in RFC 3339, in its own time zone: the schedule's,
// or the local one.
func DayTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// Count formats a number for a table.
func Count(n int64) string { return strconv.FormatInt(n, 10) }
