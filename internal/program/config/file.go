package config

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
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

// length returns the duration at a path, or 0.
func (f *File) length(path string) time.Duration {
	value, _ := f.lookup(path).value.(time.Duration)
	return value
}

// texts returns the list at a path, or nil.
func (f *File) texts(path string) []string {
	value, _ := f.lookup(path).value.([]string)
	return slices.Clone(value)
}

// named returns the texts whose paths begin with a prefix, by the rest of the path.
func (f *File) named(prefix string) map[string]string {
	all := map[string]string{}
	for path, s := range f.settings {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			if strings.HasPrefix(name, `"`) {
				name, _ = strconv.Unquote(name) // it is quoted as in Go
			}
			all[name], _ = s.value.(string)
		}
	}
	return all
}
