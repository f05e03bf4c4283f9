package top

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/exactly-one/tenure/internal/program/console"
)

// key is a key of the keyboard: a character, or one of these.
type key rune

const (
	keyTab       key = '\t'
	keyInterrupt key = 3 // Ctrl-C, which is no signal on a raw terminal
	keyUp        key = -1
	keyDown      key = -2
	keyOther     key = -3
)

// The alternate screen keeps the earlier contents of the terminal.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// terminal is a terminal in raw mode with the alternate screen.
type terminal struct {
	out      *console.Output
	in, file *os.File
	before   *term.State
}

// isTerminal reports whether the command can draw and read keys.
func isTerminal(in io.Reader, out *console.Output) bool {
	input, inOK := in.(*os.File)
	output, outOK := out.Writer.(*os.File)
	return !out.JSON() && inOK && outOK && term.IsTerminal(int(input.Fd())) && term.IsTerminal(int(output.Fd()))
}

// openTerminal changes the terminal; close changes it back.
func openTerminal(in io.Reader, out *console.Output) (*terminal, error) {
	t := &terminal{out: out, in: in.(*os.File), file: out.Writer.(*os.File)}
	var err error
	if t.before, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return nil, err
	}
	return t, out.Draw(enterScreen)
}

func (t *terminal) close() {
	_ = t.out.Draw(leaveScreen) // the terminal may be gone
	_ = term.Restore(int(t.in.Fd()), t.before)
}

// draw shows the lines of render for the size of the terminal.
func (t *terminal) draw(render func(width, height int) []string) error {
	width, height, err := term.GetSize(int(t.file.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	return t.out.Draw("\x1b[H" + strings.Join(render(width, height), "\x1b[K\r\n") + "\x1b[K\x1b[J")
}

// keys returns the pressed keys, until the input ends. Reading a terminal cannot be
// interrupted: the goroutine exits with the program.
func (t *terminal) keys() <-chan key {
	keys := make(chan key)
	go func() { // exits with the input or the program
		defer close(keys)
		buffer := make([]byte, 64)
		for {
			n, err := t.in.Read(buffer)
			for _, k := range parse(string(buffer[:n])) {
				keys <- k
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}

// parse returns the keys in a text from a terminal.
func parse(text string) []key {
	var keys []key
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b[A"), strings.HasPrefix(text, "\x1bOA"):
			keys, text = append(keys, keyUp), text[3:]
		case strings.HasPrefix(text, "\x1b[B"), strings.HasPrefix(text, "\x1bOB"):
			keys, text = append(keys, keyDown), text[3:]
		case text[0] == '\x1b': // another sequence, or the key itself
			return append(keys, keyOther)
		default:
			r, size := utf8.DecodeRuneInString(text)
			keys, text = append(keys, key(r)), text[size:]
			if r == utf8.RuneError {
				return keys
			}
		}
	}
	return keys
}
