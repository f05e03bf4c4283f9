package console

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/exactly-one/tenure/internal/printable"
)

// Screen shows texts in the same place of a terminal, one after the other. It
// changes nothing else of the terminal, so that whatever ends the program leaves
// that usable.
type Screen struct {
	out    *Output
	file   *os.File
	height int // lines of the last text
}

// NewScreen returns nil if the output is no terminal or not for people.
func NewScreen(out *Output) *Screen {
	file, ok := out.Writer.(*os.File)
	if out.JSON() || !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Screen{out: out, file: file}
}

// Draw shows a text over the last one. Lines that do not fit the terminal are
// left out, since what has scrolled away cannot be drawn over.
func (s *Screen) Draw(render func(width int) string) error {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil {
		width, height = Unlimited, Unlimited
	}
	text, lines := over(printable.Lines(render(width)), s.height, height)
	s.height = lines
	return s.out.Draw(text)
}

// over is what draws a text over the last one of a number of lines, on a terminal
// of a height, and how many lines it has.
func over(text string, last, height int) (string, int) {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1] // after the last line end is nothing
	if height > 1 {
		lines = lines[:min(len(lines), height-1)]
	}
	var drawn strings.Builder
	if last > 0 {
		drawn.WriteString("\x1b[" + strconv.Itoa(last) + "A")
	}
	for _, line := range lines {
		drawn.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	drawn.WriteString("\x1b[J")
	return drawn.String(), len(lines)
}
