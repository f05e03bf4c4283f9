package processor

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/exactly-one/tenure"
)

// Selection says which events of a log a processor is given. The zero value
// selects all. Conditions of different kinds must all be met.
type Selection struct {
	// Types are the types of events, any of them; none means all types.
	Types []string
	// RequiredTags are keys of tags that must all be there, with any value.
	RequiredTags []string
	// AnyTags are keys of tags of which at least one must be there.
	AnyTags []string
	// ExactTags are tags, as "key=value", that must all be there.
	ExactTags []string
}

func (s Selection) validate() error {
	for _, key := range append(append([]string{}, s.RequiredTags...), s.AnyTags...) {
		if key == "" || strings.Contains(key, "=") || !isText(key) {
			return invalid("%q is no key of a tag: give what stands before the =", key)
		}
	}
	for _, kind := range s.Types {
		if !isText(kind) {
			return invalid("the type %q is not UTF-8, or has a zero", kind)
		}
	}
	for _, tag := range s.ExactTags {
		if err := CheckTag(tag); err != nil {
			return err
		}
	}
	return nil
}

// CheckTag returns an error that matches tenure.ErrInvalidConfig unless a tag
// has the form "key=value" with a key, and is a text that PostgreSQL can hold.
func CheckTag(tag string) error {
	if !isText(tag) {
		return invalid("the tag %q is not UTF-8, or has a zero", tag)
	}
	if at := strings.Index(tag, "="); at < 1 {
		return invalid("the tag %q has not the form key=value", tag)
	}
	return nil
}

// isText reports whether PostgreSQL can hold a text.
func isText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// conditions are the selection as SQL on a row called log, with its arguments
// bound as parameters from number next on.
func (s Selection) conditions(next int) (sql string, args []any) {
	var all strings.Builder
	add := func(condition string, argument any) {
		fmt.Fprintf(&all, "\n    AND "+condition, next)
		args = append(args, argument)
		next++
	}
	if len(s.Types) > 0 {
		add("log.type::text = ANY ($%d::text[])", s.Types)
	}
	if len(s.ExactTags) > 0 {
		add("log.tags::text[] @> $%d::text[]", s.ExactTags)
	}
	const keys = "SELECT split_part(tag, '=', 1) FROM unnest(log.tags::text[]) tag"
	if len(s.RequiredTags) > 0 {
		add("ARRAY("+keys+") @> $%d::text[]", s.RequiredTags)
	}
	if len(s.AnyTags) > 0 {
		add("ARRAY("+keys+") && $%d::text[]", s.AnyTags)
	}
	return all.String(), args
}

// invalid reports something that cannot be used.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
