package processor

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/exactly-one/tenure"
)

// Selection selects the events of a log for a processor. The zero value selects all. An
// event must meet every set condition.
type Selection struct {
	// Types are event types, one of which must match; empty for all.
	Types []string
	// RequiredTags are tag keys. All must be present, with any value.
	RequiredTags []string
	// AnyTags are tag keys. At least one must be present.
	AnyTags []string
	// ExactTags are tags of the form "key=value". All must be present.
	ExactTags []string
}

func (s Selection) validate() error {
	for _, key := range append(append([]string{}, s.RequiredTags...), s.AnyTags...) {
		if key == "" || strings.Contains(key, "=") || !isText(key) {
			return invalid("%q is not a tag key: use only the part before the =", key)
		}
	}
	for _, kind := range s.Types {
		if !isText(kind) {
			return invalid("the type %q must be valid UTF-8 without NUL", kind)
		}
	}
	for _, tag := range s.ExactTags {
		if err := CheckTag(tag); err != nil {
			return err
		}
	}
	return nil
}

// CheckTag returns an error matching tenure.ErrInvalidConfig unless the tag has the form
// "key=value" with a key, and is valid text for PostgreSQL.
func CheckTag(tag string) error {
	if !isText(tag) {
		return invalid("the tag %q must be valid UTF-8 without NUL", tag)
	}
	if at := strings.Index(tag, "="); at < 1 {
		return invalid("the tag %q must have the form key=value", tag)
	}
	return nil
}

// isText reports whether PostgreSQL can store a text.
func isText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// conditions returns the selection as SQL on a row named log. Its arguments are
// bound as parameters starting at number next.
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

// readsTags reports whether an event's tags decide.
func (s Selection) readsTags() bool {
	return len(s.RequiredTags)+len(s.AnyTags)+len(s.ExactTags) > 0
}

// matches reports whether the selection contains an event, as conditions does in SQL.
func (s Selection) matches(e *Event) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(e.Tags, func(tag string) bool {
			before, _, _ := strings.Cut(tag, "=")
			return before == key
		})
	}
	lacks := func(key string) bool { return !has(key) }
	lacksTag := func(tag string) bool { return !slices.Contains(e.Tags, tag) }
	return (len(s.Types) == 0 || slices.Contains(s.Types, e.Type)) && !slices.ContainsFunc(s.ExactTags, lacksTag) &&
		!slices.ContainsFunc(s.RequiredTags, lacks) && (len(s.AnyTags) == 0 || slices.ContainsFunc(s.AnyTags, has))
}

// invalid returns an error matching tenure.ErrInvalidConfig.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
