package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Show prints the effective configuration as TOML: each value with its origin in a
// comment, defaults too, and secrets masked. The flags must come from a parsed command
// line, before [Apply]; they may be nil, and so may the file. Wrong values are left out
// and returned as one error.
func Show(w io.Writer, flags *pflag.FlagSet, file *File, env Environment) error {
	out := bufio.NewWriter(w)
	s := &shower{out: out, flags: flags, file: file, env: env}
	for i := range keys {
		if k := &keys[i]; !k.many() {
			s.single(k)
		}
	}
	for _, setting := range file.ordered() {
		if setting.key.many() {
			s.element(setting)
		}
	}
	return errors.Join(errors.Join(s.faults...), out.Flush())
}

// shower prints settings table by table.
type shower struct {
	out    *bufio.Writer
	flags  *pflag.FlagSet
	file   *File
	env    Environment
	table  string // of the last line
	faults []error
}

// single prints a key with one value.
func (s *shower) single(k *key) {
	s.header("["+k.table()+"]", k.table())
	name := k.path[len(k.table())+1:]
	value, remark, err := s.effective(k)
	switch {
	case err != nil:
		s.faults = append(s.faults, err)
		fmt.Fprintf(s.out, "# %s: refused, see the error\n", name)
	case value == "":
		fmt.Fprintf(s.out, "# %s: %s\n", name, remark)
	default:
		fmt.Fprintf(s.out, "%s = %s  # %s\n", name, value, remark)
	}
}

// effective returns the value of a key in the syntax of the file, with its origin as the
// remark. There is no value, and the remark says why, if the key has none or if a
// stronger source sets the same in another way.
func (s *shower) effective(k *key) (value, remark string, err error) {
	if value := s.fromFlags(k); value != "" {
		return value, "--" + k.flag, nil
	}
	rival := s.rivalFlag(k)
	found, ok, err := fromEnvironment(k, s.env)
	if err != nil {
		return "", "", err
	}
	if ok && rival == "" {
		return shown(k, found.value, ""), found.origin, nil
	}
	if rival == "" {
		rival = s.rivalVariable(k)
	}
	setting := s.file.lookup(k.path)
	switch {
	case rival != "" && (ok || setting.key != nil || k.fallback == nil):
		return "", rival + " says it", nil
	case setting.key != nil:
		return shown(k, setting.value, setting.template), s.place(setting), nil
	case k.fallback == nil:
		return "", k.note + " (default)", nil
	default:
		return literal(k.fallback), "default", nil
	}
}

// rivalFlag returns the flag on the command line with the meaning of a key, or "".
func (s *shower) rivalFlag(k *key) string {
	for _, name := range k.instead {
		if s.flags != nil && s.flags.Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// rivalVariable returns the variable with the meaning of a key, or "".
func (s *shower) rivalVariable(k *key) string {
	for i := range keys {
		if !slices.Contains(k.instead, keys[i].flag) {
			continue
		}
		if found, ok, err := fromEnvironment(&keys[i], s.env); ok && err == nil {
			return found.origin
		}
	}
	return ""
}

// fromFlags returns the command line's value for a key, or "".
func (s *shower) fromFlags(k *key) string {
	if s.flags == nil || k.flag == "" || !s.flags.Changed(k.flag) {
		return ""
	}
	flag := s.flags.Lookup(k.flag)
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return shown(k, list.GetSlice(), "")
	}
	given, err := parseText(k.kind, flag.Value.String())
	if err != nil {
		given = flag.Value.String()
	}
	return shown(k, given, "")
}

func (s *shower) place(setting setting) string {
	return fmt.Sprintf("%s:%d", flatName(s.file.name), setting.at.line)
}

// element prints a key of a list of tables or of a table with a name of the
// user's choice.
func (s *shower) element(setting setting) {
	s.header(setting.header(), setting.table)
	value := shown(setting.key, setting.value, setting.template)
	fmt.Fprintf(s.out, "%s = %s  # %s\n", setting.name(), value, s.place(setting))
}

func (s *shower) header(text, table string) {
	if table == s.table {
		return
	}
	if s.table != "" {
		fmt.Fprintln(s.out)
	}
	fmt.Fprintln(s.out, text)
	s.table = table
}

// flatName is a file's name in a comment, where a line break would end it.
func flatName(name string) string {
	return strings.Trim(quoted(name), `"`)
}
