package flagvalue

import (
	"errors"
	"math"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/rolespec"
)

// RoleFlags are the flags for roles: by name, by one 64-bit key, or by a pair of 32-bit
// keys.
type RoleFlags struct {
	flags *pflag.FlagSet
	names []string
	keys  []string
	key1  string
	key2  string
}

// Register adds the flags. doing is the command's use of the roles.
func (f *RoleFlags) Register(flags *pflag.FlagSet, doing string) {
	f.register(flags, "a role to "+doing, "; repeatable")
}

// RegisterSingle is like Register, for a command with exactly one role.
func (f *RoleFlags) RegisterSingle(flags *pflag.FlagSet, doing string) {
	f.register(flags, "the role to "+doing, "")
}

func (f *RoleFlags) register(flags *pflag.FlagSet, what, repeatable string) {
	f.flags = flags
	flags.StringArrayVar(&f.names, "role", nil, what+": `NAME`, NAME=KEY with a 64-bit lock key, key:N or pair:A,B"+repeatable)
	flags.StringArrayVar(&f.keys, "key", nil, what+", by its 64-bit advisory lock `key`"+repeatable)
	flags.StringVar(&f.key1, "key1", "", what+", by a pair of 32-bit keys: the first `key`")
	flags.StringVar(&f.key2, "key2", "", "with --key1: the second `key`")
}

// Roles returns the roles of the flags, possibly none.
func (f *RoleFlags) Roles() ([]tenure.Role, error) {
	pair := f.flags.Changed("key1") || f.flags.Changed("key2")
	if len(f.names) > 0 && (len(f.keys) > 0 || pair) || len(f.keys) > 0 && pair {
		return nil, console.Usage("name roles with only one of --role, --key, and --key1 with --key2")
	}
	var roles []tenure.Role
	for _, name := range f.names {
		role, err := rolespec.Parse(name)
		if err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	for _, text := range f.keys {
		key, err := rolespec.ParseKey("--key", text, math.MinInt64, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		roles = append(roles, tenure.KeyRole(key))
	}
	if pair {
		role, err := f.pairRole()
		if err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	seen := map[string]bool{}
	for _, role := range roles {
		if seen[role.Name()] {
			return nil, console.Usage("the role %s is given twice", role)
		}
		seen[role.Name()] = true
	}
	return roles, nil
}

// pairRole returns the role with a pair of keys.
func (f *RoleFlags) pairRole() (tenure.Role, error) {
	if !f.flags.Changed("key1") || !f.flags.Changed("key2") {
		return tenure.Role{}, console.Usage("--key1 and --key2 must be used together")
	}
	key1, err1 := rolespec.ParseKey("--key1", f.key1, math.MinInt32, math.MaxInt32)
	key2, err2 := rolespec.ParseKey("--key2", f.key2, math.MinInt32, math.MaxInt32)
	return tenure.KeyPairRole(int32(key1), int32(key2)), errors.Join(err1, err2)
}

// Required is like Roles, but none is an error.
func (f *RoleFlags) Required() ([]tenure.Role, error) {
	roles, err := f.Roles()
	if err == nil && len(roles) == 0 {
		err = console.Usage("no role is named: use --role NAME, or --key N, or --key1 A and --key2 B")
	}
	return roles, err
}

// Single is like Required, but more than one is an error.
func (f *RoleFlags) Single() (tenure.Role, error) {
	roles, err := f.Required()
	if err != nil {
		return tenure.Role{}, err
	}
	if len(roles) > 1 {
		return tenure.Role{}, console.Usage("name one role; %d were given", len(roles))
	}
	return roles[0], nil
}

// RoleFilter is the flag --role of a command to show a single role. Only the name is
// used, not the key.
type RoleFilter struct {
	flags *pflag.FlagSet
	text  string
}

// Register adds the flag.
func (f *RoleFilter) Register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.text, "role", "", "show the terms of this role only: `NAME`, NAME=KEY, key:N or pair:A,B")
}

// Given reports whether the flag was given.
func (f *RoleFilter) Given() bool { return f.flags.Changed("role") }

// Name returns the name of the role, or "" if the flag is not set.
func (f *RoleFilter) Name() (string, error) {
	if !f.Given() {
		return "", nil
	}
	role, err := rolespec.Parse(f.text)
	return role.Name(), err
}
