package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

// A password is no longer valid after it was removed from the file, and a file
// that other users can read is not used.
func TestPasswordFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "correct horse battery", "another horse battery"
	write("anna:"+first+"\n", 0o644)
	if _, err := openPasswords(path, slog.New(slog.DiscardHandler)); console.ExitCode(err) != console.ExitUsage || !strings.Contains(err.Error(), "chmod 0640") || strings.Contains(err.Error(), first) {
		t.Errorf("a file that everybody can read: %v", err)
	}
	write("anna:"+first+"\n", 0o600)
	file, err := openPasswords(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	known := func(user, password string) bool {
		file.looked = time.Time{} // as if the last check was long ago
		return file.known(user, password)
	}
	if !known("anna", first) || known("anna", second) || known("bert", first) {
		t.Error("at first")
	}
	write("anna:"+second+"\nbert:"+first+"\n", 0o600)
	if known("anna", first) || !known("anna", second) || !known("bert", first) {
		t.Error("after a change")
	}
	write("bert:"+first+"\n", 0o600)
	if known("anna", second) || !known("bert", first) {
		t.Error("after a user was removed")
	}
	for text, mode := range map[string]os.FileMode{"bert:" + first + "\n": 0o644, "nonsense\n": 0o600} {
		write(text, mode)
		if known("bert", first) {
			t.Errorf("%q with the mode %04o lets somebody in", text, mode)
		}
	}
	write("bert:"+first+"\n", 0o640)
	if !known("bert", first) {
		t.Error("after it was put right")
	}
}
