package tenuretest_test

import (
	"os"
	"strings"
	"testing"
)

// What people copy from the documentation is what is compiled and run here.
func TestDocumentationShowsTheTests(t *testing.T) {
	var code strings.Builder
	for _, name := range []string{"scheduler_test.go", "example_test.go"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(content)
	}
	page, err := os.ReadFile("../docs/howto/test-your-code.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 8 {
		t.Fatalf("the page has %d blocks of Go: the test looks for the wrong thing", len(blocks))
	}
	for _, rest := range blocks {
		block, _, closed := strings.Cut(rest, "```\n")
		if first, _, _ := strings.Cut(block, "\n"); !closed {
			t.Errorf("the block that begins with %q has no end", first)
		} else if !strings.HasPrefix(block, "import ") && !strings.Contains(code.String(), "\n"+block) {
			t.Errorf("the block that begins with %q differs from the tests", first)
		}
	}
}
