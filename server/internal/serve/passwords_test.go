package serve

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

// TestListedUsersHaveTheirAccess: users of the configuration file log in with hashed
// passwords and have the access that it says, until it is reread without them.
func TestListedUsersHaveTheirAccess(t *testing.T) {
	t.Parallel()
	const first, second = "correct horse battery", "another horse battery"
	viola := config.User{Name: "viola", PasswordHash: passwordhash.New(first)}
	olga := config.User{Name: "olga", Operator: true, PasswordHash: passwordhash.New(first)}
	p, err := newPasswords([]config.User{viola, olga})
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
	check("nobody", first, "refused")
	if err := p.list([]config.User{{Name: "viola", Operator: true, PasswordHash: viola.PasswordHash}}); err != nil {
		t.Fatal(err)
	}
	check("viola", first, "operator")
	check("olga", first, "refused")
	if err := p.list([]config.User{{Name: "viola", PasswordHash: first}}); console.ExitCode(err) != console.ExitUsage || strings.Contains(err.Error(), first) {
		t.Errorf("a password in place of a hash: %v", err)
	}
	check("viola", first, "operator") // a refused change changes nothing
}
