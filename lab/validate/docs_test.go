package validate

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedConfigurationIsAccepted: the program accepts the files that the page shows,
// and uses every key in them.
func TestDocumentedConfigurationIsAccepted(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/howto/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("no configuration: the test looks in the wrong place")
	}
	for _, block := range blocks {
		path := filepath.Join(t.TempDir(), "tenure.toml")
		if err := os.WriteFile(path, block[1], 0o600); err != nil {
			t.Fatal(err)
		}
		check := exec.CommandContext(t.Context(), program, "config", "check", path)
		check.Env = []string{"DB_PASSWORD=secret"}
		out, err := check.CombinedOutput()
		if err != nil || !bytes.Equal(out, []byte(path+": no errors\n")) {
			t.Errorf("%v: %s\n%s", err, out, block[1])
		}
	}
}

// TestDocumentedCommandsExist: the program has the commands and the flags that the page
// shows.
func TestDocumentedCommandsExist(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/howto/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)(?:^|`)tenure ([a-z-]+(?: [^`\n#>|]*)?)").FindAllSubmatch(page, -1)
	if len(shown) < 5 {
		t.Fatalf("%d commands: the test looks in the wrong place", len(shown))
	}
	for _, command := range shown {
		checkCommand(t, "deploy.md", append([]string{"tenure"}, strings.Fields(string(command[1]))...))
	}
}
