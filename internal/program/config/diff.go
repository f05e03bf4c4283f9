package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one difference between a file and the same file later.
type Change struct {
	// Key is the changed key; of an entry of a list of tables, the list and the entry's
	// name.
	Key string
	// Flag is the flag for the key's value; empty if there is none.
	Flag string
	// List is the list of tables of an entry. It can also be the list a key belongs to,
	// like the notifiers to the alerts. It is empty for other keys.
	List string
	// Evidence is a flag of exactly the commands affected by the change.
	Evidence string
	// Live means: the change can be applied immediately. Every other change takes effect
	// when the program starts again.
	Live bool

	what string
}

// What is the change on one line, without secrets.
func (c Change) What() string { return c.Key + " " + c.what }

// String is [Change.What], and how to apply the change.
func (c Change) String() string {
	text := c.What()
	if !c.Live {
		text += ": it takes effect when the program is started again"
	}
	return text
}

// Diff returns the changes, sorted by key. A nil file has no keys. It compares the files
// alone: a key overridden by a flag or a variable has no effect before and after.
func Diff(before, after *File) []Change {
	changes := diffKeys(single(before), single(after))
	for list, evidence := range listEvidence {
		changes = append(changes, diffEntries(list, evidence, entries(before, list), entries(after, list))...)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return changes
}

// listEvidence is, for each list of tables, the flag of the commands with a use for it.
var listEvidence = map[string]string{alertList: alertEvidence, "cron": cronEvidence, userList: userEvidence}

// single are the settings outside lists of tables, by path.
func single(f *File) map[string]setting {
	settings := map[string]setting{}
	for _, s := range f.ordered() {
		if s.list == "" {
			settings[s.path] = s
		}
	}
	return settings
}

func diffKeys(before, after map[string]setting) []Change {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changes []Change
	for path, s := range all {
		was, had := before[path]
		is, has := after[path]
		if had && has && literal(was.value) == literal(is.value) {
			continue
		}
		from, to := was.shown(), is.shown()
		what := fmt.Sprintf("changes from %s to %s", from, to)
		if from == to {
			what = "changes" // what differs is secret
		}
		change := Change{Key: path, Flag: s.key.flag, Evidence: s.key.evidence, Live: s.key.live, what: what}
		if strings.HasPrefix(path, notifications) {
			change.List = alertList // both are applied together
		}
		changes = append(changes, change)
	}
	return changes
}

// shown is the value for people's eyes.
func (s setting) shown() string {
	if s.key == nil {
		return "the default"
	}
	return shown(s.key, s.value, s.template)
}

// entries are the tables of a list by their names, each as one text.
func entries(f *File, list string) map[string]string {
	names, texts := map[string]string{}, map[string]string{}
	for _, s := range f.ordered() {
		if s.list != list {
			continue
		}
		if s.name() == "name" {
			names[s.table], _ = s.value.(string)
		}
		texts[s.table] += s.name() + " = " + literal(s.value) + "\n"
	}
	byName := map[string]string{}
	for table, text := range texts {
		byName[names[table]] = text
	}
	return byName
}

func diffEntries(list, evidence string, before, after map[string]string) []Change {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changes []Change
	for name := range all {
		was, had := before[name]
		is, has := after[name]
		what := "changes"
		switch {
		case !had:
			what = "is new"
		case !has:
			what = "is removed"
		case was == is:
			continue
		}
		changes = append(changes, Change{Key: list + " " + quoted(name), List: list, Evidence: evidence, Live: true, what: what})
	}
	return changes
}
