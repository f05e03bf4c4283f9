// Package passwordhash makes and checks hashes of passwords: argon2id in PHC's string
// format, and bcrypt.
package passwordhash

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// The parameters of new hashes: the first in OWASP's Password Storage Cheat Sheet with
// 19 MiB, which fits the memory of a small container.
const (
	newMemory  = 19 << 10 // KiB
	newTime    = 2
	newThreads = 1
	saltSize   = 16
	sumSize    = 32
)

// The bounds on the parameters of a hash: a mistyped number must not stop the program.
const (
	maxMemory  = 256 << 10 // KiB
	maxTime    = 20
	maxThreads = 16
	maxCost    = 16 // of bcrypt
)

// Hash is the hash of a password.
type Hash struct {
	bcrypt []byte // nil for argon2id

	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

// New returns a new argon2id hash of a password.
func New(password string) string {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	sum := argon2.IDKey([]byte(password), salt, newTime, newMemory, newThreads, sumSize)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, newMemory, newTime, newThreads, encode(salt), encode(sum))
}

var errForm = errors.New("the hash is not of the form $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH or $2b$12$…: tenure serve password makes one")

// Parse reads a hash. Errors contain nothing of it.
func Parse(text string) (*Hash, error) {
	if strings.HasPrefix(text, "$argon2") {
		return parseArgon2(text)
	}
	cost, err := bcrypt.Cost([]byte(text))
	switch {
	case err != nil:
		return nil, errForm
	case cost > maxCost:
		return nil, fmt.Errorf("the bcrypt hash has the cost %d; it must be at most %d", cost, maxCost)
	}
	return &Hash{bcrypt: []byte(text)}, nil
}

func parseArgon2(text string) (*Hash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return nil, errForm
	}
	h := &Hash{}
	if n, err := fmt.Sscanf(parts[3]+"\n", "m=%d,t=%d,p=%d\n", &h.memory, &h.time, &h.threads); err != nil || n != 3 {
		return nil, errForm
	}
	var errSalt, errSum error
	h.salt, errSalt = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	h.sum, errSum = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if errSalt != nil || errSum != nil || !within(len(h.salt), 8, 64) || !within(len(h.sum), 16, 64) {
		return nil, errForm
	}
	if !within(h.memory, 8, maxMemory) || !within(h.time, 1, maxTime) || !within(h.threads, 1, maxThreads) {
		return nil, fmt.Errorf("the argon2id hash has m=%d,t=%d,p=%d; these must be at most m=%d,t=%d,p=%d", h.memory, h.time, h.threads, maxMemory, maxTime, maxThreads)
	}
	return h, nil
}

func within[T cmp.Ordered](n, least, most T) bool { return n >= least && n <= most }

// matches reports whether a password has the hash.
func (h *Hash) matches(password string) bool {
	if h.bcrypt != nil {
		return bcrypt.CompareHashAndPassword(h.bcrypt, []byte(password)) == nil
	}
	sum := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1
}

// id identifies the hash.
func (h *Hash) id() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %d %d %d %q %q", h.bcrypt, h.memory, h.time, h.threads, h.salt, h.sum))
}
