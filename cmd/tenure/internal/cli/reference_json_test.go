package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	jsonTag   = regexp.MustCompile("json:\"([a-z_]+)")
	jsonField = regexp.MustCompile(`"([a-z_]+)"`)
)

// The page lists exactly the fields of the objects that commands print.
func TestReferenceListsTheFieldsOfJSON(t *testing.T) {
	t.Parallel()
	printed := map[string]bool{"toml": true, "yaml": true, "sql": true, "tests": true, "days": true, "mode": true, "ended": true, "acknowledged": true, "messages": true} // of maps
	for _, folder := range []string{".", "../../../../internal/program/record", "../../../../internal/program/version", "../../../../internal/program/service", "../../../../internal/program/connect", "../../../../internal/program/console", "../../../../server/internal/alertcommand", "../../../../server/internal/serve"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range jsonTag.FindAllStringSubmatch(string(text), -1) {
				printed[match[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(printed, "change") // only the HTTP API has it
	page, err := os.ReadFile("../../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## JSON output\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no section on JSON")
	}
	listed := map[string]bool{}
	for _, match := range jsonField.FindAllStringSubmatch(section, -1) {
		listed[match[1]] = true
		if !printed[match[1]] {
			t.Errorf("the page lists the field %q, which no command prints", match[1])
		}
	}
	for name := range printed {
		if !listed[name] {
			t.Errorf("the page does not list the field %q", name)
		}
	}
}
