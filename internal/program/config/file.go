package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// File is the content of a file. It does not change and may be used concurrently.
type File struct {
	name     string
	settings map[string]setting  // by path
	tables   map[string]position // where each table begins, by path
	elements map[string]int      // how many tables each list of tables has
}

// setting is one key with its value.
type setting struct {
	key   *key
	path  string // with the numbers and names left open by the key's path
	table string // the path of its table
	list  string // the list of tables around the table, or ""
	value any
	// template is the text before the environment was put in; empty if it does
	// not refer to the environment.
	template string
	at       position
}

// maxSize is far above every honest file; it keeps a wrong name, of a device say,
// from filling the memory.
const maxSize = 1 << 20

// Load reads a file; env supplies the variables in its values. If a file cannot be read
// or has errors, Load returns one error with all of them, each on its line and each an
// [*Error]. A file with a secret must not be open to other users.
func Load(path string, env Environment) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	parsed, err := Parse(path, data, env)
	if err != nil {
		return nil, err
	}
	if fault := parsed.exposed(file); fault != nil {
		return nil, fault
	}
	return parsed, nil
}

func unreadable(path string, err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err // the path is in the message already
	}
	return &Error{File: path, Message: fmt.Sprintf("the file cannot be read: %v", err)}
}

// Parse is [Load] for the content of a file. Errors call the file by name.
func Parse(name string, data []byte, env Environment) (*File, error) {
	data, fault := decoded(name, data)
	if fault != nil {
		return nil, fault
	}
	file := &File{name: name, settings: map[string]setting{}, tables: map[string]position{}, elements: map[string]int{}}
	r := &reader{env: env, lines: newLines(data), file: file}
	r.read()
	if r.clean() {
		r.checkRelations()
	}
	if err := joined(r.faults); err != nil {
		return nil, err
	}
	return file, nil
}

// Command is the command for "tenure run" with its arguments; nil if the file names none.
func (f *File) Command() []string {
	value, _ := f.lookup("run.command").value.([]string)
	return slices.Clone(value)
}

// lookup returns the setting of a path; without a key if the file has none.
func (f *File) lookup(path string) setting {
	if f == nil {
		return setting{}
	}
	return f.settings[path]
}

// set reports whether the file has a path.
func (f *File) set(path string) bool { return f.lookup(path).key != nil }

// text returns the text at a path, or "".
func (f *File) text(path string) string {
	value, _ := f.lookup(path).value.(string)
	return value
}

// notifications begins the paths of notifiers.
const notifications = "alerts.notifications."

// notifiers are the names of all notifiers, sorted.
func (f *File) notifiers() []string {
	var names []string
	for path := range f.tables {
		if name, ok := strings.CutPrefix(path, notifications); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ordered are all settings: the tables in the order of the file, and within them
// the keys in the order of the table of keys.
func (f *File) ordered() []setting {
	if f == nil {
		return nil
	}
	rank := make(map[*key]int, len(keys))
	for i := range keys {
		rank[&keys[i]] = i
	}
	return slices.SortedFunc(maps.Values(f.settings), func(a, b setting) int {
		return cmp.Or(
			cmp.Compare(f.tables[a.table].offset, f.tables[b.table].offset),
			cmp.Compare(rank[a.key], rank[b.key]),
			cmp.Compare(a.at.offset, b.at.offset),
		)
	})
}

// header is the header of a setting's table.
func (s setting) header() string {
	if s.list != "" {
		return "[[" + s.list + "]]"
	}
	return "[" + s.table + "]"
}

// name is the setting's path within its table.
func (s setting) name() string { return strings.TrimPrefix(s.path, s.table+".") }
