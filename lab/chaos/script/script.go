// Package script has the scripts of a chaos run: timed steps, each of which is one
// fault. A script is made from a seed, printed one step a line, and read again.
package script

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step is one fault.
type Step struct {
	At   time.Duration // from the start of the run
	Kind string        // see [Kinds]
	Node int           // the target, counted from 1; 0 if the kind has none
	Role int           // the target, counted from 1; 0 if the kind has none
	For  time.Duration // how long the fault lasts
	By   time.Duration // how large it is: a delay, or a step of a clock
}

// String returns the step as a line of a script.
func (s Step) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-8v %s", s.At, s.Kind)
	if s.Node > 0 {
		fmt.Fprintf(&text, " node=%d", s.Node)
	}
	if s.Role > 0 {
		fmt.Fprintf(&text, " role=%d", s.Role)
	}
	if s.For > 0 {
		fmt.Fprintf(&text, " for=%v", s.For)
	}
	if s.By != 0 {
		fmt.Fprintf(&text, " by=%v", s.By)
	}
	return text.String()
}

// Format returns steps as the text of a script.
func Format(steps []Step) string {
	var text strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&text, s)
	}
	return text.String()
}

// Parse reads a script. Empty lines and lines that begin with # are comments.
func Parse(text io.Reader) ([]Step, error) {
	var steps []Step
	lines := bufio.NewScanner(text)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, err := parseStep(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		steps = append(steps, step)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.At - b.At) })
	return steps, lines.Err()
}

func parseStep(words []string) (s Step, err error) {
	if len(words) < 2 {
		return s, fmt.Errorf("%q is not TIME KIND, followed by node=, role=, for= or by=", strings.Join(words, " "))
	}
	if s.At, err = time.ParseDuration(words[0]); err != nil {
		return s, err
	}
	s.Kind = words[1]
	k, found := Find(s.Kind)
	if !found {
		return s, fmt.Errorf("there is no kind of fault %q", s.Kind)
	}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "node":
			s.Node, err = strconv.Atoi(value)
		case "role":
			s.Role, err = strconv.Atoi(value)
		case "for":
			s.For, err = time.ParseDuration(value)
		case "by":
			s.By, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return s, err
		}
	}
	switch {
	case k.OnNode && s.Node < 1:
		return s, fmt.Errorf("%s needs node=", s.Kind)
	case k.OnRole && s.Role < 1:
		return s, fmt.Errorf("%s needs role=", s.Kind)
	}
	return s, nil
}

// Compact shortens the time without faults between two steps to at most idle, so
// that a part of a long script takes less time.
func Compact(steps []Step, idle time.Duration) []Step {
	all := slices.Clone(steps)
	var end, moved time.Duration
	for i, s := range all {
		if gap := s.At - end; gap > idle {
			moved += gap - idle
		}
		end = max(end, s.At+s.For)
		all[i].At -= moved
	}
	return all
}

// End returns when the last fault ends.
func End(steps []Step) time.Duration {
	var end time.Duration
	for _, s := range steps {
		end = max(end, s.At+s.For)
	}
	return end
}
