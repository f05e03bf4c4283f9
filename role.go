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

// MaxRoleName is the longest role name, in bytes.
const MaxRoleName = 255

// Role is what is being led: a name and the key of its lock. The zero Role is
// not valid. Roles are comparable.
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

// NamedRole is the role with this name. Its lock key is derived from the name
// and from a random identifier of the installation, so that two installations
// in one database never meet. The name must be valid UTF-8 of 1 to 255 bytes
// without control characters; [Node.Election] refuses any other.
func NamedRole(name string) Role { return Role{name: name} }

// KeyRole is the role that is led by holding this 64-bit advisory lock, for
// programs that share the key with others. Its name is "key:N".
func KeyRole(key int64) Role {
	return Role{name: "key:" + strconv.FormatInt(key, 10), kind: keySingle, a: key}
}

// KeyPairRole is the role that is led by holding this pair of 32-bit integers
// as an advisory lock. Its name is "key:A:B". PostgreSQL keeps pairs and 64-bit
// keys in separate spaces.
func KeyPairRole(key1, key2 int32) Role {
	return Role{
		name: "key:" + strconv.Itoa(int(key1)) + ":" + strconv.Itoa(int(key2)),
		kind: keyPair, a: int64(key1), b: key2,
	}
}

// WithKey returns the role with the same name and this 64-bit lock key instead
// of its own. Every node must bring the same key for the same name; one that
// does not is refused with [ErrKeyMismatch].
func (r Role) WithKey(key int64) Role {
	return Role{name: r.name, kind: keySingle, a: key}
}

// Name returns the role's name.
func (r Role) Name() string { return r.name }

// String returns the role's name.
func (r Role) String() string { return r.name }

// LockKey is the key of an advisory lock: one 64-bit integer, or a pair of
// 32-bit integers. LockKeys are comparable.
type LockKey struct {
	Key  int64 // the key, or of a pair the first
	Key2 int32 // of a pair the second
	Pair bool
}

// String returns "N" or "A:B".
func (k LockKey) String() string {
	if k.Pair {
		return strconv.FormatInt(k.Key, 10) + ":" + strconv.Itoa(int(k.Key2))
	}
	return strconv.FormatInt(k.Key, 10)
}

// LockKey returns the key of the role's lock in an installation: for a role
// with a key of its own that key, otherwise the first 64 bits, big-endian, of
// SHA-256 over the installation's 16 bytes and the name.
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

// Validate returns an error that wraps [ErrInvalidRole] and says what is wrong
// with the role's name, or nil.
func (r Role) Validate() error {
	switch {
	case r.name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalidRole)
	case len(r.name) > MaxRoleName:
		return fmt.Errorf("%w: the name has %d bytes; at most %d are allowed", ErrInvalidRole, len(r.name), MaxRoleName)
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
