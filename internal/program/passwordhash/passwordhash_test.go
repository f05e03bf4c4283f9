package passwordhash

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const right = "correct horse battery"

// TestHashesMatchTheirPasswordOnly: new hashes, those of other programs, and bcrypt match
// one password.
func TestHashesMatchTheirPasswordOnly(t *testing.T) {
	t.Parallel()
	blowfish, err := bcrypt.GenerateFromPassword([]byte(right), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	made := New(right)
	if again := New(right); again == made {
		t.Error("two hashes of one password are equal: the salt is constant")
	}
	for name, c := range map[string]struct{ text, password string }{
		"a new hash": {made, right},
		// From the test vectors of the reference implementation, phc-winner-argon2.
		"another program's": {"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password"},
		"bcrypt":            {string(blowfish), right},
	} {
		h, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !h.matches(c.password) || h.matches(c.password+"x") || h.matches("") {
			t.Errorf("%s: does not match its password alone", name)
		}
	}
}

// TestUnusableHashesAreRefused: hashes with parameters that would stop the program, and
// what is none, are refused without being repeated.
func TestUnusableHashesAreRefused(t *testing.T) {
	t.Parallel()
	const salt, sum = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, text := range []string{
		"", "$argon2id$", "$argon2i$v=19$m=65536,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=16$m=65536,t=2,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=4294967295,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=65536,t=4294967295,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=65536,t=0,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=65536,t=1,p=0$" + salt + "$" + sum, "$argon2id$v=19$m=65536,t=1,p=1,x=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=65536,t=2,p=1$$" + sum, "$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$" + sum + "$",
		"$2b$31$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy", "$2b$12$short",
	} {
		h, err := Parse(text)
		if err == nil || h != nil {
			t.Errorf("%q: %v", text, h)
		} else if strings.Contains(err.Error(), sum) || strings.Contains(err.Error(), "N9qo") {
			t.Errorf("the error repeats the hash: %v", err)
		}
	}
}

// TestCheckerRemembersCorrectPasswordsOnly: a correct password is checked once in ten
// minutes, a wrong one and an unknown user's every time, and of another hash as well.
func TestCheckerRemembersCorrectPasswordsOnly(t *testing.T) {
	t.Parallel()
	now, whole := time.Now(), 0
	c := NewChecker()
	c.now = func() time.Time { return now }
	c.check = func(_ *Hash, password string) bool {
		whole++
		return password == right
	}
	first, second := parse(t, New(right)), parse(t, New(right))
	for i, step := range []struct {
		hash           *Hash
		password       string
		after          time.Duration
		correct, whole bool
	}{
		{first, right, 0, true, true}, {first, right, 0, true, false}, {second, right, 0, true, true},
		{first, "wrong", 0, false, true}, {first, "wrong", 0, false, true}, {nil, right, 0, false, true}, {nil, right, 0, false, true},
		{first, right, memoryTime - time.Second, true, false}, {first, right, time.Second, true, true},
	} {
		now = now.Add(step.after)
		before := whole
		if correct := c.Check(step.hash, step.password); correct != step.correct || (whole > before) != step.whole {
			t.Errorf("step %d, %q: correct %v, whole checks: %d", i, step.password, correct, whole-before)
		}
	}
	for i := range 2 * maxCorrect {
		c.remember(c.digest(first, string(rune(i))))
	}
	if len(c.correct) > maxCorrect {
		t.Errorf("%d passwords are remembered", len(c.correct))
	}
}

// TestChecksInParallelAreLimited: no more checks than slots are under way.
func TestChecksInParallelAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewChecker()
		var under, most, all atomic.Int64
		c.check = func(*Hash, string) bool {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(time.Second) // of the test's own clock
			under.Add(-1)
			all.Add(1)
			return false
		}
		var group sync.WaitGroup
		for range 5 * parallel {
			group.Go(func() { c.Check(nil, "wrong") })
			synctest.Wait()
		}
		group.Wait()
		if most.Load() != parallel || all.Load() != 5*parallel {
			t.Errorf("%d checks, at most %d at a time; want %d", all.Load(), most.Load(), parallel)
		}
	})
}

func parse(t *testing.T, text string) *Hash {
	t.Helper()
	h, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
