package console

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTableAlignsColumns(t *testing.T) {
	rows := [][]string{
		{"ROLE", "STATE", "APPLICATION"},
		{"billing", "leads", "tenure api-1 session"},
		{"äöü", "vacant", "-"},
	}
	for width, want := range map[int]string{
		Unlimited: "ROLE     STATE   APPLICATION\nbilling  leads   tenure api-1 session\näöü      vacant  -\n",
		37:        "ROLE     STATE   APPLICATION\nbilling  leads   tenure api-1 session\näöü      vacant  -\n",
		36:        "ROLE     STATE   APPLICATION\nbilling  leads   tenure api-1 sessi…\näöü      vacant  -\n",
		24:        "ROLE     STATE   APPLIC…\nbilling  leads   tenure…\näöü      vacant  -\n",
		1:         "ROLE    STATE   APPLI…\nbilli…  leads   tenur…\näöü     vacant  -\n",
	} {
		if got := Table(rows, width); got != want {
			t.Errorf("width %d: got\n%swant\n%s", width, got, want)
		}
		for line := range strings.Lines(Table(rows, width)) {
			if characters := utf8.RuneCountInString(line) - 1; width > 22 && characters > width {
				t.Errorf("width %d: %d characters in %q", width, characters, line)
			}
		}
	}
	if got := Table(nil, 80); got != "" {
		t.Errorf("%q", got)
	}
}

func TestWrapBreaksLongCells(t *testing.T) {
	rows := [][]string{{"ok", "clock", "within a second of this machine's"}, {"", "", "-> nothing to do"}, {"ok", "x", ""}}
	want := "ok  clock  within a second of\n           this machine's\n           -> nothing to do\nok  x\n"
	if got := Table(wrap(rows, 31), 31); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := wrap(rows, Unlimited); len(got) != len(rows) {
		t.Errorf("%q", got)
	}
	if got := wrap(nil, 80); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got := lines("a averylongword b", 5); strings.Join(got, "|") != "a|averylongword|b" {
		t.Errorf("%q", got)
	}
}

// Nothing is cut off in a file, a pipe or a buffer.
func TestWidthIsUnlimitedWithoutTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, w := range []any{file, &strings.Builder{}, nil} {
		if got := terminalWidth(w); got != Unlimited {
			t.Errorf("%T: %d", w, got)
		}
	}
}
