package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
	"github.com/exactly-one/tenure/server/dashboard"
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
	if _, err := openPasswords(path, nil, slog.New(slog.DiscardHandler)); console.ExitCode(err) != console.ExitUsage || !strings.Contains(err.Error(), "chmod 0640") || strings.Contains(err.Error(), first) {
		t.Errorf("a file that everybody can read: %v", err)
	}
	write("anna:"+first+"\n", 0o600)
	file, err := openPasswords(path, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	known := func(user, password string) bool {
		file.looked = time.Time{} // as if the last check was long ago
		access, ok := file.known(user, password)
		return ok && access == dashboard.Operator
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
			t.Errorf("%q with the mode %04o lets bert in", text, mode)
		}
	}
	write("bert:"+first+"\n", 0o640)
	if !known("bert", first) {
		t.Error("after it was put right")
	}
}

// TestListedUsersHaveTheirAccess: users of the configuration file log in with hashed
// passwords and have the access that it says, until it is reread without them; a line of
// the password file may have a hash.
func TestListedUsersHaveTheirAccess(t *testing.T) {
	t.Parallel()
	const first, second = "correct horse battery", "another horse battery"
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("hashed:"+passwordhash.New(second)+"\nplain:"+first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	viola := config.User{Name: "viola", PasswordHash: passwordhash.New(first)}
	olga := config.User{Name: "olga", Operator: true, PasswordHash: passwordhash.New(first)}
	p, err := openPasswords(path, []config.User{viola, olga}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	check := func(user, password, want string) {
		t.Helper()
		got := "refused"
		if access, ok := p.known(user, password); ok {
			got = access.String()
		}
		if got != want {
			t.Errorf("%s with %q: %s, want %s", user, password, got, want)
		}
	}
	check("viola", first, "viewer")
	check("viola", second, "refused")
	check("olga", first, "operator")
	check("hashed", second, "operator")
	check("hashed", first, "refused")
	check("plain", first, "operator")
	check("plain", second, "refused")
	check("nobody", first, "refused")
	check("hashed", passwordhash.New(second), "refused")
	if err := p.list([]config.User{{Name: "viola", Operator: true, PasswordHash: viola.PasswordHash}}); err != nil {
		t.Fatal(err)
	}
	check("viola", first, "operator")
	check("olga", first, "refused")
	twice := []config.User{{Name: "plain", PasswordHash: viola.PasswordHash}}
	if err := p.list(twice); console.ExitCode(err) != console.ExitUsage || !strings.Contains(err.Error(), `both have the user "plain"`) {
		t.Errorf("a user of both: %v", err)
	}
	check("viola", first, "operator") // a refused change changes nothing
}

// TestUserMovesToConfiguration: a user can be moved from the password file to the
// configuration, although no user has logged in since the file changed.
func TestUserMovesToConfiguration(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery"
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("anna:" + password + "\nbert:" + password + "\n")
	p, err := openPasswords(path, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	anna := []config.User{{Name: "anna", PasswordHash: passwordhash.New(password)}}
	if err := p.list(anna); console.ExitCode(err) != console.ExitUsage {
		t.Errorf("a user of both: %v", err)
	}
	write("bert:" + password + "\n")
	if err := p.list(anna); err != nil {
		t.Fatalf("a user who was removed from the file: %v", err)
	}
	if access, ok := p.known("anna", password); !ok || access != dashboard.Viewer {
		t.Errorf("anna: %v %v", access, ok)
	}
}
