package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/secretfile"
	"github.com/exactly-one/tenure/dashboard"
)

// maxPasswords is the maximum size of the password file in bytes.
const maxPasswords = 1 << 20

// passwordInterval is the minimum time between two reads of the file when users
// log in.
const passwordInterval = time.Second

// passwords checks logins against a password file. After a change of the file,
// the new passwords apply within a second. While the file cannot be used, every
// login fails. It is safe for concurrent use.
type passwords struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	looked time.Time
	text   []byte
	check  func(user, password string) bool // nil if the file cannot be used
}

// openPasswords reads a file with lines of USER:PASSWORD. Errors contain no
// password.
func openPasswords(path string, log *slog.Logger) (*passwords, error) {
	p := &passwords{path: path, log: log, looked: time.Now()}
	text, check, err := readPasswords(path)
	if err != nil {
		return nil, err
	}
	p.text, p.check = text, check
	return p, nil
}

// known reports whether a user has a password.
func (p *passwords) known(user, password string) bool {
	p.mu.Lock()
	if time.Since(p.looked) >= passwordInterval {
		p.reloadLocked()
	}
	check := p.check
	p.mu.Unlock()
	return check != nil && check(user, password)
}

// reloadLocked rereads the file.
func (p *passwords) reloadLocked() {
	p.looked = time.Now()
	text, check, err := readPasswords(p.path)
	switch {
	case err != nil && p.check != nil:
		p.log.Error("the password file cannot be used: all password logins fail", "error", err)
	case err == nil && p.check != nil && bytes.Equal(text, p.text):
		return
	}
	p.text, p.check = text, check
}

func readPasswords(path string) (text []byte, check func(user, password string) bool, err error) {
	text, err = secretfile.Read(path, maxPasswords)
	if err != nil {
		return nil, nil, console.Usage("--password-file: %w", err)
	}
	byUser := map[string]string{}
	number := 0
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
		byUser[user] = password
	}
	check, err = dashboard.Passwords(byUser)
	if err != nil {
		return nil, nil, console.Usage("--password-file: %w", err)
	}
	return text, check, nil
}
