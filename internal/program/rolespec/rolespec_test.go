package rolespec

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

func TestParseAcceptsEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tenure.Role{
		"billing":                     tenure.NamedRole("billing"),
		"billing=0x464F52470001":      tenure.NamedRole("billing").WithKey(0x464F52470001),
		"billing=-7":                  tenure.NamedRole("billing").WithKey(-7),
		"a=b=7":                       tenure.NamedRole("a=b").WithKey(7),
		"a=b":                         tenure.NamedRole("a=b"),
		"key:42":                      tenure.KeyRole(42),
		"key:0x2A":                    tenure.KeyRole(42),
		"key:-9223372036854775808":    tenure.KeyRole(math.MinInt64),
		"pair:1,2":                    tenure.KeyPairRole(1, 2),
		"pair:-1,0x10":                tenure.KeyPairRole(-1, 16),
		"key:1:2":                     tenure.KeyPairRole(1, 2),
		"key:rotation":                tenure.NamedRole("key:rotation"),
		"pair:1":                      tenure.NamedRole("pair:1"),
		"key:42=7":                    tenure.NamedRole("key:42=7"),
		"pair:1,2=7":                  tenure.NamedRole("pair:1,2=7"),
		"billing=9223372036854775807": tenure.NamedRole("billing").WithKey(math.MaxInt64),
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "the name is empty",
		"a\tb":                        "control character",
		"a=9223372036854775808":       "the key of a is out of range",
		"key:-9223372036854775809":    "the role key:-9223372036854775809 is out of range",
		"pair:1,2147483648":           "the role pair:1,2147483648 is out of range",
		"key:-2147483649:1":           "the role key:-2147483649:1 is out of range",
		"a\tb=7":                      "control character",
		"billing=0x10000000000000000": "the key of billing is out of range",
	} {
		if _, err := Parse(text); !errors.Is(err, tenure.ErrInvalidRole) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want it to say %q", text, err, want)
		}
	}
}
