package sandbox

import (
	"crypto/rand"
	"strings"
)

// UniqueName makes an identifier for a schema or a database from a test's name,
// so that a database administrator's views say which test they show. It needs no
// quotes and has at most 40 bytes, which leases on PostgreSQL allow.
func UniqueName(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, strings.TrimPrefix(test, "Test"))
	return "t_" + name[:min(len(name), 27)] + "_" + strings.ToLower(rand.Text()[:10])
}
