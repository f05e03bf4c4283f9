package docpage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUpdateReplacesThePartOfItsTargetOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "one\n<!-- written by make a -->\n<!-- end -->\ntwo\n<!-- written by make b -->\n\nold\n\n<!-- end -->\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"a": "", "b": "old"} {
		err := Update(path, target, func(old string) string {
			if old != want {
				t.Errorf("make %s had written %q, want %q", target, old, want)
			}
			return target + "\n"
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "one\n<!-- written by make a -->\n\na\n\n<!-- end -->\ntwo\n<!-- written by make b -->\n\nb\n\n<!-- end -->\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the page is %q, %v; want %q", got, err, want)
	}
	if err := Update(path, "c", func(old string) string { return old }); err == nil {
		t.Error("a page without the part was changed, want an error")
	}
}
