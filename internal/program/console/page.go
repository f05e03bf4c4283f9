package console

import (
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/printable"
)

// Page is a text for a person. Everything in it is printable, except the colors of
// states.
type Page struct {
	width  int  // of sentences; or Unlimited
	tables int  // the width of tables; or Unlimited
	all    bool // show all columns of tables
	colors bool
	text   strings.Builder
}

func (o *Output) page(width int) *Page {
	return &Page{width: width, tables: width, all: o.Format == FormatWide, colors: o.Colors()}
}

// Write adds whole lines, and escapes their unprintable characters. It implements
// io.Writer for package fmt, and returns no error.
func (p *Page) Write(lines []byte) (int, error) {
	p.text.WriteString(printable.Lines(string(lines)))
	return len(lines), nil
}

// Line adds a line, cut at the width.
func (p *Page) Line(line string) { p.text.WriteString(Cut(printable.Text(line), p.width) + "\n") }

// Paragraph adds a text, wrapped at the width.
func (p *Page) Paragraph(text string) {
	text = printable.Text(text)
	if p.width == Unlimited {
		p.text.WriteString(text + "\n")
		return
	}
	for _, line := range lines(text, max(p.width, shortestProse)) {
		p.text.WriteString(Cut(line, p.width) + "\n")
	}
}

// Table adds a table. The first row is the header. If it exceeds the width, the columns
// to omit go first, in their order, and then the widest texts are cut. Columns named
// STATE and STATUS have colors.
func (p *Page) Table(rows [][]string, omit ...string) {
	rows = printableCells(rows)
	if !p.all {
		rows = fit(rows, p.tables, omit)
	}
	var paint func(column int, whole, cut string) string
	if p.colors && len(rows) > 0 {
		paint = func(column int, whole, cut string) string {
			if header := rows[0]; column >= len(header) || !slices.Contains(stateColumns, header[column]) {
				return cut
			}
			return colored(colorOf(whole), cut)
		}
	}
	p.text.WriteString(layOut(rows, p.tables, paint))
}

// Prose adds a table with sentences in its last column, wrapped at the width.
func (p *Page) Prose(rows [][]string, omit ...string) {
	if !p.all {
		rows = fit(printableCells(rows), p.tables, omit)
	}
	p.Table(wrap(rows, p.width))
}

// Stale removes the colors from later additions, since old states must not look well.
func (p *Page) Stale() { p.colors = false }
