package console

import (
	"testing"
)

// A text is drawn over the last one and never scrolls.
func TestScreenIsDrawnOverLastText(t *testing.T) {
	text, lines := over("a\nb\nc\n", 0, 0)
	if text != "a\x1b[K\nb\x1b[K\nc\x1b[K\n\x1b[J" || lines != 3 {
		t.Errorf("first: %q, %d", text, lines)
	}
	if text, lines = over("a\nb\nc\n", lines, 3); text != "\x1b[3Aa\x1b[K\nb\x1b[K\n\x1b[J" || lines != 2 {
		t.Errorf("on a low terminal: %q, %d", text, lines)
	}
}
