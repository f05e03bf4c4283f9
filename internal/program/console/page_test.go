package console

import (
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// A narrow table omits columns in their order, and only then cuts texts. All columns
// are shown if there is room, if they are asked for, and if the output is no terminal.
func TestTableOmitsColumnsInOrder(t *testing.T) {
	t.Parallel()
	rows := func() [][]string {
		return [][]string{
			{"ROLE", "STATE", "TERM", "SINCE", "APPLICATION"},
			{"billing", "leads", "1795426915928", "2026-11-23 09:41:55.928", "tenure api-1 session"},
			{"vacant", "vacant", "-", "-", "-"},
		}
	}
	const all = "ROLE     STATE   TERM           SINCE                    APPLICATION\n" +
		"billing  leads   1795426915928  2026-11-23 09:41:55.928  tenure api-1 session\n" +
		"vacant   vacant  -              -                        -\n"
	for _, test := range []struct {
		format Format
		width  int
		want   string
	}{
		{FormatText, Unlimited, all},
		{FormatText, 77, all},
		{FormatWide, 10, all},
		{FormatText, 76, "ROLE     STATE   TERM           SINCE\nbilling  leads   1795426915928  2026-11-23 09:41:55.928\nvacant   vacant  -              -\n"},
		{FormatText, 50, "ROLE     STATE   SINCE\nbilling  leads   2026-11-23 09:41:55.928\nvacant   vacant  -\n"},
		{FormatText, 30, "ROLE     STATE   SINCE\nbilling  leads   2026-11-23 0…\nvacant   vacant  -\n"},
	} {
		out := &Output{Format: test.format, Color: ColorNever}
		got := out.Render(test.width, func(page *Page) { page.Table(rows(), "APPLICATION", "MISSING", "TERM") })
		if got != test.want {
			t.Errorf("%s at %d: got\n%swant\n%s", test.format, test.width, got, test.want)
		}
	}
}

// A long text is cut before a column is omitted.
func TestTableCutsLongTextsFirst(t *testing.T) {
	t.Parallel()
	out := &Output{Format: FormatText, Color: ColorNever}
	rows := [][]string{{"AT", "BY", "ERROR"}, {"2026-11-23", "ops@host", strings.Repeat("long ", 40)}}
	got := out.Render(80, func(page *Page) { page.Table(rows, "BY") })
	if header, row, _ := strings.Cut(got, "\n"); !strings.Contains(header, "BY") || utf8.RuneCountInString(row) != 81 || !strings.HasSuffix(row, "…\n") {
		t.Errorf("got\n%s", got)
	}
}

// Only states have colors, and a foreign text stays escaped with them.
func TestOnlyStatesHaveColors(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31mdead\x1b[0m\u009b2J\u202e"
	fill := func(page *Page) {
		page.Paragraph(evil)
		page.Line(evil)
		_, _ = io.WriteString(page, evil+"\n")
		page.Table([][]string{
			{"ROLE", "STATE", "REASON"},
			{"active", "leads", "dead"},
			{evil, "vacant", evil},
			{"c", evil, "active"},
			{"d", "active, two roles", ""},
			{"e", "inactive", "dead"},
		})
	}
	plain := (&Output{Color: ColorNever}).Render(Unlimited, fill)
	if strings.ContainsAny(plain, "\x1b\u009b\u202e") || !strings.Contains(plain, `\u001b[31mdead\u001b[0m\u009b2J\u202e`) {
		t.Errorf("without colors: %q", plain)
	}
	got := (&Output{Color: ColorAlways}).Render(Unlimited, fill)
	rest := got
	for _, want := range []string{"\x1b[32mleads\x1b[0m", "\x1b[31mvacant\x1b[0m", "\x1b[33mactive, two roles\x1b[0m"} {
		if strings.Count(rest, want) != 1 {
			t.Errorf("%q is not there once in %q", want, got)
		}
		rest = strings.Replace(rest, want, want[5:len(want)-4], 1)
	}
	if rest != plain {
		t.Errorf("other colors: got %q, want %q", rest, plain)
	}
	stale := (&Output{Color: ColorAlways}).Render(Unlimited, func(page *Page) { page.Stale(); fill(page) })
	if stale != plain {
		t.Errorf("stale: got %q, want %q", stale, plain)
	}
}

// A cell that is cut keeps its color, and its sequences take no room.
func TestColorsTakeNoRoom(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"A", "STATUS"}, {"abcdefgh", "draining"}}
	got := (&Output{Color: ColorAlways}).Render(16, func(page *Page) { page.Table(rows) })
	if want := "A        STATUS\nabcdef…  \x1b[33mdraini…\x1b[0m\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file and a pipe have no colors, unless they are asked for.
func TestColorsNeedTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for mode, want := range map[ColorMode]bool{ColorAuto: false, ColorAlways: true, ColorNever: false} {
		if got := (&Output{Color: mode, Writer: file}).Colors(); got != want {
			t.Errorf("%s: %v", mode, got)
		}
	}
	var mode ColorMode
	if err := mode.Set("sometimes"); err == nil {
		t.Error("an unknown mode is accepted")
	}
}

func TestParagraphIsWrapped(t *testing.T) {
	t.Parallel()
	out := &Output{Color: ColorNever}
	if got := out.Render(25, func(page *Page) { page.Paragraph("3 of 34 roles have no leader: billing for 41 s.") }); got != "3 of 34 roles have no\nleader: billing for 41 s.\n" {
		t.Errorf("%q", got)
	}
	if got := out.Render(Unlimited, func(page *Page) { page.Paragraph("a b\nc") }); got != "a b\\u000ac\n" {
		t.Errorf("%q", got)
	}
}
