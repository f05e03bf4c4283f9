package installation

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// KeyMismatch is the error for a candidate with another key of a role than the recorded
// one. It explains how to use the recorded key, and how to record the other.
func KeyMismatch(role tenure.Role, recorded string, id uuid.UUID) error {
	own := role.LockKey(id).String()
	flag, call := spell(role.Name(), recorded, id)
	wanted, _ := spell(role.Name(), own, id)
	return fmt.Errorf("%w: %s has the key %s in the database and %s here: use the first on every node, with --role %s, or in Go with %s; "+
		"or stop the candidates and record the second with tenure role rekey %s",
		tenure.ErrKeyMismatch, role, recorded, own, flag, call, wanted)
}

// spell returns how a command and a program name a role with a key.
func spell(name, key string, id uuid.UUID) (flag, call string) {
	first, second, pair := strings.Cut(key, ":")
	switch {
	case name == "key:"+key && pair:
		return shellWord(name), fmt.Sprintf("KeyPairRole(%s, %s)", first, second)
	case name == "key:"+key:
		return shellWord(name), fmt.Sprintf("KeyRole(%s)", key)
	case tenure.NamedRole(name).LockKey(id).String() == key:
		return shellWord(name), fmt.Sprintf("NamedRole(%q)", name)
	default:
		return shellWord(name + "=" + key), fmt.Sprintf("NamedRole(%q).WithKey(%s)", name, key)
	}
}

// shellWord quotes a word for a shell if it must be.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=.,:/@+", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
