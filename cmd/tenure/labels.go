package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// labels is a flag that reads one label each time that it is given.
type labels struct{ values map[string]string }

// Set implements pflag.Value.
func (l *labels) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("a label is written NAME=VALUE")
	}
	if _, twice := l.values[name]; twice {
		return fmt.Errorf("the label %q is given twice", name)
	}
	if l.values == nil {
		l.values = map[string]string{}
	}
	l.values[name] = value
	return nil
}

func (l *labels) String() string {
	var texts []string
	for name, value := range l.values {
		texts = append(texts, name+"="+value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (l *labels) Type() string { return "label" }
