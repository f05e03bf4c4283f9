// Package docpage puts the results of test runs into pages of the documents. The
// part of a page that a make target writes begins with a comment that names the
// target:
//
//	<!-- written by make chaos -->
//
//	<!-- end -->
package docpage

import (
	"fmt"
	"os"
	"strings"
)

const end = "<!-- end -->"

// Update replaces what a make target has written into the page at path by what
// change makes of it. Both are without the empty lines around them.
func Update(path, target string, change func(old string) string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin := "<!-- written by make " + target + " -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s lacks the lines %q and %q", path, begin, end)
	}
	text := before + begin + "\n" + strings.TrimSpace(change(strings.TrimSpace(old))) + "\n\n" + end + after
	if text == string(content) { // other tests may be reading the page
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a page of the documents
}
