package console

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Screen shows texts at the same place of a terminal, one after another. It changes
// nothing else of the terminal, which stays usable however the program ends.
type Screen struct {
	out    *Output
	file   *os.File
	height int // number of lines of the last text
}

// NewScreen returns nil if the output is not a terminal or is JSON.
func NewScreen(out *Output) *Screen {
	file, ok := out.Writer.(*os.File)
	if out.JSON() || !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Screen{out: out, file: file}
}

// Draw shows a text over the last one. It omits lines beyond the terminal, since lines
// out of view cannot be overwritten.
func (s *Screen) Draw(fill func(*Page)) error {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil {
		width, height = Unlimited, Unlimited
	}
	page := s.out.page(width)
	fill(page)
	text, lines := over(page.text.String(), s.height, height)
	s.height = lines
	return s.out.Draw(text)
}

// over returns the sequence that draws a text over the last one, which has last lines, and
// the number of lines drawn.
func over(text string, last, height int) (string, int) {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1] // there is nothing after the last line end
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
