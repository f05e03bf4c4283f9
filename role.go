package tenure

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxRoleName is the maximum length in bytes of role names, and of other names and
// values in the database.
const maxRoleName = 255

// Role is the subject of an election: a name and a lock key. The zero Role is invalid.
// Roles are comparable.
type Role struct {
	name string
	kind keyKind
	a    int64
	b    int32
}

type keyKind uint8

const (
	keyFromName keyKind = iota
	keySingle
	keyPair
)

// NamedRole returns the role with this name. Its lock key is derived from the name and a
// random identifier of the installation: the keys of two installations in one database
// differ. The name must be valid UTF-8 of 1 to 255 bytes without control characters;
// [Node.Election] rejects any other.
func NamedRole(name string) Role { return Role{name: name} }

// KeyRole returns the role with this 64-bit advisory lock, for programs sharing the key
// with other software. Its name is "key:N".
func KeyRole(key int64) Role {
	return Role{name: "key:" + strconv.FormatInt(key, 10), kind: keySingle, a: key}
}

// KeyPairRole returns the role with the advisory lock of this pair of 32-bit keys. Its
// name is "key:A:B". PostgreSQL keeps pairs and 64-bit keys in separate key spaces.
func KeyPairRole(key1, key2 int32) Role {
	return Role{
		name: "key:" + strconv.Itoa(int(key1)) + ":" + strconv.Itoa(int(key2)),
		kind: keyPair, a: int64(key1), b: key2,
	}
}

// WithKey returns the role with the same name and this 64-bit lock key. Every node must
// use the same key for the same name; with another key a node gets [ErrKeyMismatch].
func (r Role) WithKey(key int64) Role {
	return Role{name: r.name, kind: keySingle, a: key}
}

// Name returns the role's name.
func (r Role) Name() string { return r.name }

// String returns the role's name.
func (r Role) String() string { return r.name }

// LockKey is the key of an advisory lock: a 64-bit integer or a pair of 32-bit
// integers. LockKeys are comparable.
type LockKey struct {
	Key  int64 // the key, or the first of a pair
	Key2 int32 // the second of a pair
	Pair bool
}

// String returns "N" or "A:B".
func (k LockKey) String() string {
	if k.Pair {
		return strconv.FormatInt(k.Key, 10) + ":" + strconv.Itoa(int(k.Key2))
	}
	return strconv.FormatInt(k.Key, 10)
}

// LockKey returns the key of the role's lock in an installation. For a role
// without its own key, it is the first 64 bits, big-endian, of SHA-256
// over the installation's 16 bytes and the name.
func (r Role) LockKey(installation uuid.UUID) LockKey {
	switch r.kind {
	case keySingle:
		return LockKey{Key: r.a}
	case keyPair:
		return LockKey{Key: r.a, Key2: r.b, Pair: true}
	default:
		sum := sha256.Sum256(append(installation[:], r.name...))
		return LockKey{Key: int64(binary.BigEndian.Uint64(sum[:8]))}
	}
}

// Validate returns an error matching [ErrInvalidRole] if the role's name is invalid.
func (r Role) Validate() error {
	switch {
	case r.name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalidRole)
	case len(r.name) > maxRoleName:
		return fmt.Errorf("%w: the name has %d bytes; at most %d are allowed", ErrInvalidRole, len(r.name), maxRoleName)
	case !utf8.ValidString(r.name):
		return fmt.Errorf("%w: the name is not valid UTF-8", ErrInvalidRole)
	}
	for _, c := range r.name {
		if unicode.IsControl(c) {
			return fmt.Errorf("%w: the name contains the control character %U", ErrInvalidRole, c)
		}
	}
	return nil
}
