package serve

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
	"github.com/exactly-one/tenure/internal/program/secretfile"
	"github.com/exactly-one/tenure/server/dashboard"
)

// maxPasswords is the maximum size of the password file in bytes.
const maxPasswords = 1 << 20

// passwordInterval is the minimum time between two reads of the file when users
// log in.
const passwordInterval = time.Second

// credential is the hash of a user's password, and the user's access.
type credential struct {
	access dashboard.Access
	hash   *passwordhash.Hash // nil for a plain password
	sum    [sha256.Size]byte  // of a plain password
}

// passwords checks logins against the users of the configuration file and of a password
// file. After a change of the password file, the new passwords apply within a second.
// While the file cannot be used, every login of its users fails. It is safe for
// concurrent use.
type passwords struct {
	path    string // empty without a file
	log     *slog.Logger
	checker *passwordhash.Checker

	mu     sync.Mutex
	looked time.Time
	text   []byte
	broken bool                  // the file cannot be used
	file   map[string]credential // the file's users
	listed map[string]credential // the configuration's users
}

// openPasswords reads the users of the configuration and a file with lines of
// USER:PASSWORD, if there is one. Errors contain no password.
func openPasswords(path string, users []config.User, log *slog.Logger) (*passwords, error) {
	p := &passwords{path: path, log: log, checker: passwordhash.NewChecker(), looked: time.Now()}
	if path != "" {
		var err error
		if p.text, p.file, err = readPasswords(path); err != nil {
			return nil, err
		}
	}
	if err := p.list(users); err != nil {
		return nil, err
	}
	return p, nil
}

// list replaces the users of the configuration.
func (p *passwords) list(users []config.User) error {
	listed := map[string]credential{}
	for _, user := range users {
		hash, err := passwordhash.Parse(user.PasswordHash)
		if err == nil {
			err = checkUsers(map[string]string{user.Name: user.PasswordHash})
		}
		if err != nil {
			return console.Usage("dashboard.users: the user %q: %w", user.Name, err)
		}
		access := dashboard.Viewer
		if user.Operator {
			access = dashboard.Operator
		}
		listed[user.Name] = credential{access: access, hash: hash}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" {
		p.reloadLocked() // it is read only when a user logs in
	}
	for user := range listed {
		if _, twice := p.file[user]; twice {
			return console.Usage("dashboard.users and --password-file both have the user %q: remove one", user)
		}
	}
	p.listed = listed
	return nil
}

// exist reports whether there is a password file, or a user of the configuration.
func (p *passwords) exist() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path != "" || len(p.listed) > 0
}

// known reports whether a user has a password, and the user's access.
func (p *passwords) known(user, password string) (dashboard.Access, bool) {
	p.mu.Lock()
	if p.path != "" && time.Since(p.looked) >= passwordInterval {
		p.reloadLocked()
	}
	c, known := p.file[user]
	// A user of both, after a change of the file, has the access of the configuration.
	if listed, ok := p.listed[user]; ok {
		c, known = listed, true
	}
	p.mu.Unlock()
	if known && c.hash == nil {
		given := sha256.Sum256([]byte(password))
		if subtle.ConstantTimeCompare(given[:], c.sum[:]) == 1 {
			return c.access, true
		}
	}
	// The check of no hash always fails: the time does not show which users exist.
	return c.access, p.checker.Check(c.hash, password)
}

// reloadLocked rereads the file.
func (p *passwords) reloadLocked() {
	p.looked = time.Now()
	text, file, err := readPasswords(p.path)
	switch {
	case err != nil && !p.broken:
		p.log.Error("the password file cannot be used: logins of its users fail", "error", err)
	case err == nil && !p.broken && bytes.Equal(text, p.text):
		return
	}
	p.text, p.file, p.broken = text, file, err != nil
}

func readPasswords(path string) (text []byte, byUser map[string]credential, err error) {
	text, err = secretfile.Read(path, maxPasswords)
	if err != nil {
		return nil, nil, console.Usage("--password-file: %w", err)
	}
	byUser = map[string]credential{}
	written, number := map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, password, found := strings.Cut(line, ":")
		if !found {
			return nil, nil, console.Usage("--password-file: line %d of %s must have the form USER:PASSWORD", number, path)
		}
		if _, twice := byUser[user]; twice {
			return nil, nil, console.Usage("--password-file: line %d of %s repeats a user", number, path)
		}
		c := credential{access: dashboard.Operator}
		if passwordhash.Is(password) {
			c.hash, err = passwordhash.Parse(password)
		} else {
			c.sum = sha256.Sum256([]byte(password))
		}
		if err != nil {
			return nil, nil, console.Usage("--password-file: line %d of %s: %w", number, path, err)
		}
		byUser[user], written[user] = c, password
	}
	if err := checkUsers(written); err != nil {
		return nil, nil, console.Usage("--password-file: %w", err)
	}
	return text, byUser, nil
}

// checkUsers checks the names of users and the lengths of plain passwords; a hash is
// long enough.
func checkUsers(written map[string]string) error {
	_, err := dashboard.Passwords(written, nil)
	return err
}
