package serve

import (
	"sync"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
	"github.com/exactly-one/tenure/server/dashboard"
)

// credential is the hash of a user's password, and the user's access.
type credential struct {
	access dashboard.Access
	hash   *passwordhash.Hash
}

// passwords checks logins against the users of the configuration file. It is safe for
// concurrent use.
type passwords struct {
	checker *passwordhash.Checker

	mu    sync.Mutex
	users map[string]credential
}

// newPasswords reads the users of the configuration. Errors contain no password.
func newPasswords(users []config.User) (*passwords, error) {
	p := &passwords{checker: passwordhash.NewChecker()}
	if err := p.list(users); err != nil {
		return nil, err
	}
	return p, nil
}

// list replaces the users.
func (p *passwords) list(users []config.User) error {
	listed := map[string]credential{}
	for _, user := range users {
		hash, err := passwordhash.Parse(user.PasswordHash)
		if err == nil {
			err = checkUser(user.Name, user.PasswordHash)
		}
		if err != nil {
			return console.Usage("dashboard.users: the user %q: %w", user.Name, err)
		}
		access := dashboard.Viewer
		if user.Operator {
			access = dashboard.Operator
		}
		listed[user.Name] = credential{access, hash}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users = listed
	return nil
}

// exist reports whether there is a user.
func (p *passwords) exist() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.users) > 0
}

// known reports whether a user has a password, and the user's access.
func (p *passwords) known(user, password string) (dashboard.Access, bool) {
	p.mu.Lock()
	c := p.users[user]
	p.mu.Unlock()
	// The check of no hash always fails: the time does not show which users exist.
	return c.access, p.checker.Check(c.hash, password)
}

// checkUser checks the name of a user.
func checkUser(name, password string) error {
	_, err := dashboard.Passwords(map[string]string{name: password}, nil)
	return err
}
