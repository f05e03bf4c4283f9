package passwordhash

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// The bounds on a [Checker].
const (
	parallel   = 2 // checks, each of which needs the memory of its hash
	maxCorrect = 1000
	memoryTime = 10 * time.Minute
)

// Checker checks passwords against hashes. A browser sends the password with every
// request, so a correct one is remembered for ten minutes, as a digest with a key of this
// process; a wrong one always costs a whole check. It is safe for concurrent use.
type Checker struct {
	key   []byte
	slots chan struct{}
	now   func() time.Time
	check func(*Hash, string) bool // a whole check

	mu      sync.Mutex
	correct map[[sha256.Size]byte]time.Time // until when
}

// NewChecker returns a checker.
func NewChecker() *Checker {
	return &Checker{
		key: []byte(rand.Text()), slots: make(chan struct{}, parallel), now: time.Now, check: (*Hash).matches, correct: map[[sha256.Size]byte]time.Time{},
	}
}

// nobodys is the hash of no password. It has the parameters of new hashes.
var nobodys = &Hash{memory: newMemory, time: newTime, threads: newThreads, salt: make([]byte, saltSize), sum: make([]byte, sumSize)}

// Check reports whether a password has a hash. Without a hash it takes as long as with a
// hash of [New]: the time must not show which users exist. It waits while too many checks
// are under way; the caller must limit these.
func (c *Checker) Check(h *Hash, password string) bool {
	known := h != nil
	if !known {
		h = nobodys
	}
	digest := c.digest(h, password)
	if known && c.remembered(digest) {
		return true
	}
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	if !c.check(h, password) || !known {
		return false
	}
	c.remember(digest)
	return true
}

func (c *Checker) digest(h *Hash, password string) (digest [sha256.Size]byte) {
	id := h.id()
	mac := hmac.New(sha256.New, c.key)
	_, _ = mac.Write(id[:]) // never fails
	_, _ = mac.Write([]byte(password))
	return [sha256.Size]byte(mac.Sum(nil))
}

func (c *Checker) remembered(digest [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.correct[digest]
	return ok && c.now().Before(until)
}

func (c *Checker) remember(digest [sha256.Size]byte) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, until := range c.correct {
		if !now.Before(until) || len(c.correct) >= maxCorrect {
			delete(c.correct, other)
		}
	}
	c.correct[digest] = now.Add(memoryTime)
}
