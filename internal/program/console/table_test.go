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

// A time that is cut has lost its zone: names are cut first, in every zone.
func TestTimesAreCutLast(t *testing.T) {
	name := strings.Repeat("settlement_", 6)
	for _, at := range []string{"2026-11-30T15:17:49.831Z", "2026-11-30T20:47:49.831+05:30"} {
		rows := [][]string{{"ROLE", "STATE", "NODE", "SINCE"}, {name, "led", name, at}, {"mails", "vacant", "-", "-"}}
		page := Page{width: 80, tables: 80}
		page.Table(rows)
		for line := range strings.Lines(page.text.String()) {
			if cells(line) > 81 {
				t.Errorf("%d columns: %s", cells(line)-1, line)
			}
		}
		if !strings.Contains(page.text.String(), "  "+at+"\n") {
			t.Errorf("the time %s is cut:\n%s", at, page.text.String())
		}
	}
}

// Some characters take two columns of a terminal, and some none.
func TestWidthsAreThoseOfATerminal(t *testing.T) {
	for text, want := range map[string]int{"": 0, "api-1": 5, "größte": 6, "gro\u0308ßte": 6, "日本語ノード": 12, "한국어": 6, "ｆｕｌｌ": 8, "🚀": 2, "главный": 7} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for most, want := range map[int]string{12: "日本語ノード", 11: "日本語ノー…", 10: "日本語ノ…", 1: "…"} {
		if got := cut("日本語ノード", most); got != want {
			t.Errorf("cut to %d: %q, want %q", most, got, want)
		}
	}
	if got, want := Table([][]string{{"日本語", "a"}, {"x", "b"}}, Unlimited), "日本語  a\nx       b\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A sentence in a table is read to its end at any width.
func TestProseIsWrappedAndNotCut(t *testing.T) {
	sentence := "api-1 crashed at 2026-11-30T15:22:50Z. Its 4 roles moved to api-2 within 12 ms."
	page := Page{width: 80, tables: 80}
	page.Prose([][]string{{"BEGAN", "KIND", "ROLES", "WHAT"}, {"2026-11-30T15:22:50.618Z", "crash", "4", sentence}}, "ROLES", "KIND")
	text := page.text.String()
	for word := range strings.FieldsSeq(sentence) {
		if !strings.Contains(text, word) {
			t.Errorf("%q is missing in\n%s", word, text)
		}
	}
	for line := range strings.Lines(text) {
		if cells(line) > 81 {
			t.Errorf("%d columns: %s", cells(line)-1, line)
		}
	}
}
