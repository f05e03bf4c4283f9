package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Show prints the configuration as it takes effect, as TOML: each value with its
// origin in a comment, defaults too, and secrets masked. Flags are those of a
// command line that was parsed, before [Apply]; they may be nil, and so may the
// file. Values that are wrong are left out and returned as one error.
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
	table  string // that of the last line
	faults []error
}

// single prints a key of which there is one.
func (s *shower) single(k *key) {
	s.header("["+k.table()+"]", k.table())
	name := k.path[len(k.table())+1:]
	value, origin, err := s.effective(k)
	switch {
	case err != nil:
		s.faults = append(s.faults, err)
		fmt.Fprintf(s.out, "# %s: refused, see the error\n", name)
	case value == "":
		fmt.Fprintf(s.out, "# %s: %s (default)\n", name, k.note)
	default:
		fmt.Fprintf(s.out, "%s = %s  # %s\n", name, value, origin)
	}
}

// effective returns the value of a key, as it is written in a file, and its origin;
// no value if there is none and the key has a note instead.
func (s *shower) effective(k *key) (value, origin string, err error) {
	if value, origin := s.fromFlags(k); value != "" {
		return value, origin, nil
	}
	found, ok, err := fromEnvironment(k, s.env)
	if err != nil {
		return "", "", err
	}
	if ok {
		return shown(k, found.value, ""), found.origin, nil
	}
	if setting := s.file.lookup(k.path); setting.key != nil {
		return shown(k, setting.value, setting.template), s.place(setting), nil
	}
	if k.fallback == nil {
		return "", "", nil
	}
	return literal(k.fallback), "default", nil
}

// fromFlags returns the value that the command line has for a key.
func (s *shower) fromFlags(k *key) (value, origin string) {
	if s.flags == nil || k.flag == "" {
		return "", ""
	}
	flag := s.flags.Lookup(k.flag)
	if flag == nil || !flag.Changed {
		return "", ""
	}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return shown(k, list.GetSlice(), ""), "--" + k.flag
	}
	given, err := parseText(k.kind, flag.Value.String())
	if err != nil {
		given = flag.Value.String()
	}
	return shown(k, given, ""), "--" + k.flag
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
