package main

import (
	"io"
	"os"
	"strings"

	"github.com/exactly-one/tenure/dashboard"
)

// mostPasswords bounds the size of a file with passwords, in bytes.
const mostPasswords = 1 << 20

// openPasswords reads who may log in with a password: lines of USER:PASSWORD. An
// error tells no password.
func openPasswords(path string) (func(user, password string) bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage("--password-file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostPasswords+1))
	if err != nil {
		return nil, usage("--password-file: %w", err)
	}
	if len(text) > mostPasswords {
		return nil, usage("--password-file: %s has more than %d bytes", path, mostPasswords)
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
			return nil, usage("--password-file: line %d of %s is not of the form USER:PASSWORD", number, path)
		}
		if _, twice := byUser[user]; twice {
			return nil, usage("--password-file: line %d of %s names a user again", number, path)
		}
		byUser[user] = password
	}
	check, err := dashboard.Passwords(byUser)
	if err != nil {
		return nil, usage("--password-file: %w", err)
	}
	return check, nil
}
