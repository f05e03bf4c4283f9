package config

import "strings"

// key is one key of the file, and where else its value can come from.
type key struct {
	// path is the key with its tables: "[]" follows a list of tables, and "*" means a
	// name of the user's choice.
	path string
	kind kind
	// flag is the flag for the value; empty if there is none.
	flag string
	// instead are flags with the same meaning: if one of them is given, this key is
	// silent.
	instead []string
	// command is the only command whose flag is meant; empty for all commands with the
	// flag.
	command string
	// except is a command with another meaning of this flag.
	except string
	// evidence is the flag of programs with a use for the key; by default flag.
	evidence string
	// variables are the variables of the environment, in the order of trial; by default
	// TENURE_ and the flag.
	variables []string
	// fallback is the default; note describes a variable one.
	fallback any
	note     string
	check    func(any) error // of the value; nil if every value of its type is valid
	secret   secrecy
	// live keys can change without a new session.
	live bool
}

// table is the name of the key's table, written between brackets.
func (k *key) table() string {
	end := strings.LastIndexByte(strings.ReplaceAll(k.path, "[].", "."), '.')
	return strings.ReplaceAll(k.path, "[].", ".")[:end]
}

// many reports whether a file can have the key several times, in several tables.
func (k *key) many() bool { return strings.ContainsAny(k.path, "[*") }
