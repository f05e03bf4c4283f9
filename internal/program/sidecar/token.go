package sidecar

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/secretfile"
)

// The sizes of a token, in bytes. A shorter one could be guessed.
const (
	minToken = 16
	maxToken = 4096
)

// Token is a secret in a file. Callers must send it. When the file changes, the new
// secret is valid a second later, and the old one no longer is. While the file is
// unusable, every caller is refused. It is safe for concurrent use.
type Token struct {
	file string
	log  *slog.Logger

	mu        sync.Mutex
	checkedAt time.Time
	sum       [sha256.Size]byte
	err       error // why the file cannot be used
}

// OpenToken reads a token: the only line of a file. The error is one line,
// repeats nothing of the file, and matches [tenure.ErrInvalidConfig].
func OpenToken(file string, log *slog.Logger) (*Token, error) {
	t := &Token{file: file, log: slog.New(slog.DiscardHandler)} // the caller gets the error
	if err := t.reload(); err != nil {
		return nil, err
	}
	t.log = log
	return t, nil
}

// reload reads the file now. The error states why every caller is refused.
func (t *Token) reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read()
}

func (t *Token) read() error {
	t.checkedAt = time.Now()
	secret, err := readToken(t.file)
	if err != nil {
		if t.err == nil {
			t.log.Error("the token file cannot be used: requests that need a token are refused", "error", err)
		}
		t.err, t.sum = err, [sha256.Size]byte{}
		return err
	}
	t.err, t.sum = nil, sha256.Sum256([]byte(secret))
	return nil
}

// Matches reports whether a caller brought the token, in constant time.
func (t *Token) Matches(given string) bool {
	matches, _ := t.matches(given) // the error was logged
	return matches
}

// matches reports whether a caller sent the token, in constant time. It returns an error
// if the token cannot be used at the moment.
func (t *Token) matches(given string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.checkedAt) >= checkInterval {
		_ = t.read() // t.err has it
	}
	if t.err != nil {
		return false, t.err
	}
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1, nil
}

func readToken(name string) (string, error) {
	content, err := secretfile.Read(name, maxFile)
	if err != nil {
		return "", fmt.Errorf("%w: the token file: %w", tenure.ErrInvalidConfig, err)
	}
	secret := strings.TrimSpace(string(content))
	bad := func(what string) (string, error) {
		return "", fmt.Errorf("%w: the token file %s %s", tenure.ErrInvalidConfig, name, what)
	}
	switch {
	case secret == "":
		return bad("is empty")
	case len(secret) < minToken:
		return bad(fmt.Sprintf("holds a token of %d characters; it must have at least %d", len(secret), minToken))
	case len(secret) > maxToken:
		return bad(fmt.Sprintf("holds more than the %d characters of the longest token", maxToken))
	case strings.ContainsFunc(secret, unfitForToken):
		return bad("holds characters that no header can carry; a token is letters, digits and -._~+/= on one line")
	}
	return secret, nil
}

// unfitForToken reports characters outside a bearer token (RFC 6750, section 2.1).
func unfitForToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	default:
		return !strings.ContainsRune("-._~+/=", r)
	}
}

// bearer returns the token in an Authorization header. Its scheme's name is not
// case-sensitive (RFC 9110, section 11.1).
func bearer(header string) (token string, ok bool) {
	scheme, token, found := strings.Cut(header, " ")
	token = strings.TrimLeft(token, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsFunc(token, unfitForToken) {
		return "", false
	}
	return token, true
}
