package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Labels is a flag for labels, one each time it is given.
type Labels struct{ Values map[string]string }

// Set implements pflag.Value.
func (l *Labels) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("a label is written NAME=VALUE")
	}
	if _, twice := l.Values[name]; twice {
		return fmt.Errorf("the label %q is given twice", name)
	}
	if l.Values == nil {
		l.Values = map[string]string{}
	}
	l.Values[name] = value
	return nil
}

func (l *Labels) String() string {
	var texts []string
	for name, value := range l.Values {
		texts = append(texts, name+"="+value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (l *Labels) Type() string { return "label" }
