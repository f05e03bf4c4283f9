package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"unicode/utf8"
)

// Access is the rights of a user. The zero value is Viewer.
type Access int

// The kinds of access.
const (
	Viewer   Access = iota // may view everything
	Operator               // may also act
)

// String returns "viewer" or "operator".
func (a Access) String() string {
	if a == Operator {
		return "operator"
	}
	return "viewer"
}

// User is an authenticated user.
type User struct {
	Name   string
	Access Access
}

// secret is the digest of a user's token or password.
type secret struct {
	access Access
	sum    [sha256.Size]byte
}

// Tokens returns a function for [Authentication].Token from the tokens of operators and
// of viewers, by the user's name; either may be nil. An error matches
// tenure.ErrInvalidConfig and contains no token.
func Tokens(operators, viewers map[string]string) (func(token string) (User, bool), error) {
	secrets, err := secretsOf("token", operators, viewers)
	if err != nil {
		return nil, err
	}
	return func(token string) (user User, ok bool) {
		given := sha256.Sum256([]byte(token))
		for name, s := range secrets { // all of them, always
			if subtle.ConstantTimeCompare(given[:], s.sum[:]) == 1 {
				user, ok = User{name, s.access}, true
			}
		}
		return user, ok
	}, nil
}

// Passwords returns a function for [Authentication].Password from the passwords of
// operators and of viewers, by the user's name; either may be nil. An error matches
// tenure.ErrInvalidConfig and contains no password.
func Passwords(operators, viewers map[string]string) (func(user, password string) (Access, bool), error) {
	secrets, err := secretsOf("password", operators, viewers)
	if err != nil {
		return nil, err
	}
	return func(user, password string) (Access, bool) {
		want, known := secrets[user]
		given := sha256.Sum256([]byte(password))
		return want.access, subtle.ConstantTimeCompare(given[:], want.sum[:]) == 1 && known
	}, nil
}

// secretsOf returns the digests of secrets. No user and no secret may occur twice: the
// access would depend on chance.
func secretsOf(kind string, operators, viewers map[string]string) (map[string]secret, error) {
	all, users := map[string]secret{}, map[[sha256.Size]byte]string{}
	for access, secrets := range map[Access]map[string]string{Operator: operators, Viewer: viewers} {
		for user, text := range secrets {
			if err := checkSecret(user, text); err != nil {
				return nil, err
			}
			if _, twice := all[user]; twice {
				return nil, invalid("the user %q is an operator and a viewer: remove one", user)
			}
			s := secret{access, sha256.Sum256([]byte(text))}
			if other, shared := users[s.sum]; shared && kind == "token" {
				return nil, invalid("the users %q and %q have the same token", min(user, other), max(user, other))
			}
			all[user], users[s.sum] = s, user
		}
	}
	if len(all) == 0 {
		return nil, invalid("there is no %s", kind)
	}
	return all, nil
}

// leastSecret is the size of the shortest secret, in bytes: a shorter one could
// be guessed.
const leastSecret = 16

func checkSecret(user, secret string) error {
	switch {
	case !isUser(user):
		return invalid("the user name %q is empty, too long, or has characters that cannot be shown", user)
	case len(secret) < leastSecret:
		return invalid("the secret of the user %q has %d bytes; it must have at least %d", user, len(secret), leastSecret)
	default:
		return nil
	}
}

// maxUser is the size of the longest name of a user, in bytes.
const maxUser = 200

// isUser reports whether a name can be recorded.
func isUser(name string) bool {
	return name != "" && len(name) <= maxUser && utf8.ValidString(name) && !strings.ContainsFunc(name, isControl)
}
