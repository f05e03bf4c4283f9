package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// originAnnotation is the annotation of a flag for the origin of its value.
const originAnnotation = "tenure/origin"

// Apply gives the flags of a command the values of the environment or else of the file,
// once the command line is parsed. It does not change a flag given on the command line,
// nor flags with the same meaning as a given one. Some keys concern one command only: the
// name of the command decides. The file may be nil. Apply returns all errors together,
// each with its origin; all match [tenure.ErrInvalidConfig].
func Apply(name string, flags *pflag.FlagSet, file *File, env Environment) error {
	return errors.Join(
		applyFrom(name, flags, func(k *key) (source, bool, error) { return fromEnvironment(k, env) }),
		applyFrom(name, flags, func(k *key) (source, bool, error) { s, ok := fromFile(k, file); return s, ok, nil }),
	)
}

// Origin says where the value of a flag came from: "--lease" is the command line,
// "TENURE_LEASE" a variable, and "tenure.toml:12:
// cluster.leader_election.lease_duration" the file. It is empty for a default.
func Origin(flags *pflag.FlagSet, name string) string {
	flag := flags.Lookup(name)
	switch {
	case flag == nil || !flag.Changed:
		return ""
	case len(flag.Annotations[originAnnotation]) > 0:
		return flag.Annotations[originAnnotation][0]
	default:
		return "--" + name
	}
}

// source is a value and where it came from.
type source struct {
	value  any
	origin string
}

// applyFrom sets the remaining flags from one kind of source. They are determined before
// the first is set: two mutually exclusive values of one kind must meet in the command,
// which refuses them.
func applyFrom(name string, flags *pflag.FlagSet, find func(*key) (source, bool, error)) error {
	var open []*key
	for i := range keys {
		k := &keys[i]
		if k.flag != "" && (k.command == "" || k.command == name) && k.except != name && flags.Lookup(k.flag) != nil && !given(flags, k) {
			open = append(open, k)
		}
	}
	var faults []error
	for _, k := range open {
		found, ok, err := find(k)
		if err == nil && ok {
			err = setFlag(flags, k.flag, found)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// given reports whether a flag of the key, or one with the same meaning, is set.
func given(flags *pflag.FlagSet, k *key) bool {
	for _, name := range append([]string{k.flag}, k.instead...) {
		if flag := flags.Lookup(name); flag != nil && flag.Changed {
			return true
		}
	}
	return false
}

func setFlag(flags *pflag.FlagSet, name string, from source) error {
	items := []string{}
	switch value := from.value.(type) {
	case []string:
		items = value
	case time.Duration:
		items = append(items, WrittenDuration(value))
	default:
		items = append(items, fmt.Sprint(value))
	}
	for _, item := range items {
		if err := flags.Set(name, item); err != nil {
			var invalid *pflag.InvalidValueError
			if errors.As(err, &invalid) { // its text repeats the value, which may be a secret
				err = invalid.Unwrap()
			}
			return fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, from.origin, err)
		}
	}
	return flags.SetAnnotation(name, originAnnotation, []string{from.origin})
}

// fromEnvironment returns the value of a key's variable. An empty variable is none.
func fromEnvironment(k *key, env Environment) (source, bool, error) {
	for _, name := range k.variables {
		text, _ := env(name)
		if text == "" {
			continue
		}
		value, err := parseText(k.kind, text)
		if err == nil {
			err = checkValue(k, value)
		}
		if err != nil {
			return source{}, false, fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, name, err)
		}
		return source{value, name}, true, nil
	}
	return source{}, false, nil
}

// fromFile returns the file's value of a key.
func fromFile(k *key, file *File) (source, bool) {
	s := file.lookup(k.path)
	if s.key == nil {
		return source{}, false
	}
	return source{s.value, fmt.Sprintf("%s:%d: %s", file.name, s.at.line, s.path)}, true
}
