package console

import (
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/exactly-one/tenure/internal/printable"
)

const (
	columnGap = "  "
	narrowest = 6 // minimum width of a column, however narrow the terminal
	cutMark   = "…"

	// Unlimited is the width of an output other than a terminal.
	Unlimited = 0
)

// terminalWidth returns the width of a terminal. For files and pipes it is Unlimited:
// their output is never truncated.
func terminalWidth(w any) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Unlimited
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return Unlimited
	}
	return width
}

// Table formats rows as columns. If a line would exceed the width, the widest
// columns are truncated first, and times last.
func Table(rows [][]string, width int) string { return layOut(printableCells(rows), width, nil) }

// layOut formats printable rows as columns. paint may add colors to a cell after the cut;
// it gets the whole cell too.
func layOut(rows [][]string, width int, paint func(column int, whole, cut string) string) string {
	columns := columnWidths(rows)
	if width != Unlimited {
		narrow(rows, columns, width)
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, whole := range row {
			if i > 0 {
				line.WriteString(columnGap)
			}
			cell := cut(whole, columns[i])
			room := columns[i] - cells(cell)
			if paint != nil {
				cell = paint(i, whole, cell)
			}
			line.WriteString(cell + strings.Repeat(" ", room))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

// printableCells makes every cell printable on one line.
func printableCells(rows [][]string) [][]string {
	shown := make([][]string, len(rows))
	for i, row := range rows {
		shown[i] = make([]string, len(row))
		for j, cell := range row {
			shown[i][j] = printable.Text(cell)
		}
	}
	return shown
}

// columnWidths returns the widths of the columns without truncation.
func columnWidths(rows [][]string) []int {
	var columns []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], cells(cell))
		}
	}
	return columns
}

// hasTimes reports whether all cells of a column begin with a time: a time that is cut has lost
// its zone.
func hasTimes(rows [][]string, column int) (found bool) {
	for _, row := range rows[min(1, len(rows)):] {
		switch {
		case column >= len(row) || row[column] == "-":
		case len(row[column]) < len(time.DateTime) || row[column][4] != '-' || row[column][10] != 'T':
			return false
		default:
			found = true
		}
	}
	return found
}

// narrow reduces the widest columns of rows until a line fits, or no column can be reduced.
// It reduces times last.
func narrow(rows [][]string, columns []int, width int) {
	times := make([]bool, len(columns))
	for i := range columns {
		times[i] = hasTimes(rows, i)
	}
	for line := tableWidth(columns); line > width; line-- {
		widest := -1
		for i, column := range columns {
			first := widest < 0 || times[widest] && !times[i] || times[widest] == times[i] && column > columns[widest]
			if first && column > narrowest {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		columns[widest]--
	}
}

// cut truncates a text to a number of columns.
func cut(text string, most int) string {
	if cells(text) <= most {
		return text
	}
	taken := 1 // the mark
	for i, r := range text {
		if taken += cellsOf(r); taken > most {
			return text[:i] + cutMark
		}
	}
	return text
}

// Cut truncates a line to the width of a terminal.
func Cut(line string, width int) string {
	if width == Unlimited {
		return line
	}
	return cut(line, width)
}

// comfortable is the width up to which a column is shown whole before others are omitted:
// longer texts are cut, but for times.
const comfortable = 24

// fit omits the named columns, in their order, until the table is not wider than
// width with its longer texts cut. The first row is the header.
func fit(rows [][]string, width int, omit []string) [][]string {
	if width == Unlimited || len(rows) == 0 {
		return rows
	}
	columns := columnWidths(rows)
	for i := range columns {
		if !hasTimes(rows, i) {
			columns[i] = min(columns[i], comfortable)
		}
	}
	for _, name := range omit {
		if tableWidth(columns) <= width {
			break
		}
		i := slices.Index(rows[0], name)
		if i < 0 {
			continue
		}
		columns = slices.Delete(columns, i, i+1)
		for j, row := range rows {
			rows[j] = slices.Delete(slices.Clone(row), i, i+1)
		}
	}
	return rows
}

// tableWidth is the width of a table with these columns.
func tableWidth(columns []int) int {
	width := len(columnGap) * (len(columns) - 1)
	for _, column := range columns {
		width += column
	}
	return width
}

// shortestProse is the least width for wrapped sentences: very short lines are
// unreadable.
const shortestProse = 20

// wrap breaks the last column of rows at spaces to fit.
func wrap(rows [][]string, width int) [][]string {
	columns := columnWidths(rows)
	if width == Unlimited || len(columns) == 0 {
		return rows
	}
	last := len(columns) - 1
	room := width - last*len(columnGap)
	for _, column := range columns[:last] {
		room -= column
	}
	var wrapped [][]string
	for _, row := range printableCells(rows) {
		for i, line := range lines(row[last], max(room, shortestProse)) {
			next := make([]string, len(columns))
			if i == 0 {
				copy(next, row)
			}
			next[last] = line
			wrapped = append(wrapped, next)
		}
	}
	return wrapped
}

// lines breaks a text at spaces into lines of at most a number of characters. A
// longer word gets its own line.
func lines(text string, most int) []string {
	var all []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case cells(line)+1+cells(word) <= most:
			line += " " + word
		default:
			all = append(all, line)
			line = word
		}
	}
	return append(all, line)
}
