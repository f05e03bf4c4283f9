package docpage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckReferenceFindsStalePages(t *testing.T) {
	part := func(text string) string {
		return "# Page\n\n<!-- written by make docs-reference -->\n\n" + text + "\n\n<!-- end -->\n"
	}
	for name, test := range map[string]struct {
		page, want string // want is part of the error; empty if there is none
	}{
		"up to date":      {referenceNotice + part("one\ntwo"), ""},
		"a line differs":  {referenceNotice + part("one\n2"), `lacks "two"`},
		"a line lacks":    {referenceNotice + part("one"), `lacks "two"`},
		"a line too many": {referenceNotice + part("one\ntwo\nthree"), "too many"},
		"no notice":       {part("one\ntwo"), "first line"},
		"no part":         {referenceNotice + "one\ntwo\n", "lacks the lines"},
	} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(test.page), 0o600); err != nil {
			t.Fatal(err)
		}
		err := CheckReference(path, "one\ntwo\n")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		if page, err := os.ReadFile(path); err != nil || string(page) != test.page {
			t.Errorf("%s: the page is %q, %v after the check", name, page, err)
		}
	}
}

func TestCheckReferenceWritesOnRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := referenceNotice + "# Page\n\n<!-- written by make docs-reference -->\n\nold\n\n<!-- end -->\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(WriteReference, "1")
	if err := CheckReference(path, "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != strings.Replace(page, "old", "new", 1) {
		t.Errorf("the page is %q, %v", got, err)
	}
}

func TestTablesEscapeTheirCells(t *testing.T) {
	got := Head("flag", "default") + Row(Code("--a", "", "b|c"), "")
	want := "| flag | default |\n|---|---|\n| `--a`, `b\\|c` | |\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
