package tenure_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/exactly-one/tenure"
)

// Nodes of different versions must agree on the key of a role: these values
// were computed outside this program and must never change.
func TestLockKeyOfNameIsStable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		installation, name string
		want               int64
	}{
		{"00000000-0000-0000-0000-000000000000", "billing", -5018156101170431475},
		{"00000000-0000-0000-0000-000000000000", "scheduler", 801935551289755961},
		{"00000000-0000-0000-0000-000000000000", "größe", 6977537175593924313},
		{"0f0e0d0c-0b0a-4908-8706-050403020100", "billing", -346356677171112083},
		{"0f0e0d0c-0b0a-4908-8706-050403020100", "scheduler", 7342207363192438526},
		{"0f0e0d0c-0b0a-4908-8706-050403020100", "größe", -4075914279816718042},
	} {
		key := tenure.NamedRole(test.name).LockKey(uuid.MustParse(test.installation))
		if key != (tenure.LockKey{Key: test.want}) {
			t.Errorf("%s in %s: got %+v, want %d", test.name, test.installation, key, test.want)
		}
	}
}

func TestKeyRolesHaveTheirKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role      tenure.Role
		name, key string
		want      tenure.LockKey
	}{
		{tenure.KeyRole(0), "key:0", "0", tenure.LockKey{}},
		{tenure.KeyRole(0x464F_5247_0001), "key:77306496745473", "77306496745473", tenure.LockKey{Key: 0x464F_5247_0001}},
		{tenure.KeyRole(math.MinInt64), "key:-9223372036854775808", "-9223372036854775808", tenure.LockKey{Key: math.MinInt64}},
		{tenure.KeyPairRole(1, 100), "key:1:100", "1:100", tenure.LockKey{Key: 1, Key2: 100, Pair: true}},
		{tenure.KeyPairRole(math.MinInt32, math.MaxInt32), "key:-2147483648:2147483647", "-2147483648:2147483647",
			tenure.LockKey{Key: math.MinInt32, Key2: math.MaxInt32, Pair: true}},
		{tenure.NamedRole("billing").WithKey(42), "billing", "42", tenure.LockKey{Key: 42}},
		{tenure.KeyPairRole(1, 2).WithKey(42), "key:1:2", "42", tenure.LockKey{Key: 42}},
	} {
		if test.role.Name() != test.name || test.role.String() != test.name {
			t.Errorf("got the names %q and %q, want %q", test.role.Name(), test.role, test.name)
		}
		if got := test.role.LockKey(uuid.New()); got != test.want || got.String() != test.key {
			t.Errorf("%s: got the key %+v, %s; want %+v, %s", test.name, got, got, test.want, test.key)
		}
		if err := test.role.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Two installations in one database, or two roles in one, must not share a key.
func TestLockKeysDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var installations [2]uuid.UUID
		for i := range installations {
			copy(installations[i][:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "installation"))
		}
		names := [2]string{rapid.String().Draw(t, "name"), rapid.String().Draw(t, "name")}
		same := installations[0] == installations[1] && names[0] == names[1]
		keys := [2]tenure.LockKey{}
		for i := range keys {
			keys[i] = tenure.NamedRole(names[i]).LockKey(installations[i])
		}
		if (keys[0] == keys[1]) != same {
			t.Fatalf("the keys are %v", keys)
		}
	})
}

func TestRolesAreComparable(t *testing.T) {
	t.Parallel()
	a, again, b := tenure.NamedRole("a"), tenure.NamedRole("a"), tenure.NamedRole("b")
	if a != again || a == b {
		t.Error("roles by name")
	}
	if tenure.NamedRole("key:1") == tenure.KeyRole(1) {
		t.Error("a role that is named like a key is the role with that key")
	}
	if tenure.KeyRole(1) == tenure.NamedRole("key:1").WithKey(2) || tenure.KeyRole(1) != tenure.NamedRole("key:1").WithKey(1) {
		t.Error("roles by key")
	}
}

func TestRoleValidateRejectsInvalidNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{ // part of the message; empty if the name is good
		"billing":                        "",
		"a b/c:d%e'\"":                   "",
		"größe, 規模, 🗳":                   "",
		strings.Repeat("n", 255):         "",
		"":                               "the name is empty",
		strings.Repeat("n", 256):         "256 bytes; at most 255",
		strings.Repeat("ü", 128):         "256 bytes; at most 255",
		"\xff\xfe":                       "not valid UTF-8",
		"a\x00b":                         "U+0000",
		"line\nbreak":                    "U+000A",
		"escape \x1b[31m":                "U+001B",
		"delete \x7f":                    "U+007F",
		"next line \u0085 of the C1 set": "U+0085",
	} {
		err := tenure.NamedRole(name).Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%q is refused: %v", name, err)
		case want != "" && (!errors.Is(err, tenure.ErrInvalidRole) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
	if err := (tenure.Role{}).Validate(); !errors.Is(err, tenure.ErrInvalidRole) {
		t.Errorf("the zero role: %v", err)
	}
}
