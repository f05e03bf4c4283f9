package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// convert turns a value of the file into one of a kind. The template is the value's text
// if it refers to the environment. No error repeats the value of a string: it may be a
// secret.
func (r *reader) convert(k kind, node *unstable.Node) (value any, template string, err error) {
	if node.Kind == unstable.String {
		return r.convertText(k, string(node.Data))
	}
	if node.Kind == unstable.Array && (k == texts || k == command) {
		value, template, err = r.convertList(node)
		return value, template, err
	}
	plain := strings.ReplaceAll(string(node.Data), "_", "")
	switch {
	case k == duration && node.Kind == unstable.Float:
		seconds, err := strconv.ParseFloat(plain, 64)
		if err != nil {
			return nil, "", errors.New("the number is out of range")
		}
		value, err := secondsDuration(seconds)
		return value, "", err
	case k == duration && node.Kind == unstable.Integer:
		return nil, "", fmt.Errorf("%s has no unit; write \"%ss\" if seconds are meant", node.Data, node.Data)
	case k == integer && node.Kind == unstable.Integer:
		n, err := strconv.ParseInt(plain, 0, 64)
		if err != nil {
			return nil, "", errors.New("the number is out of range")
		}
		return n, "", nil
	case k == boolean && node.Kind == unstable.Bool:
		return string(node.Data) == "true", "", nil
	}
	return nil, "", fmt.Errorf("it must be %v, not %s", k, kindName(node.Kind))
}

// convertText reads a value written as a string. Numbers and true and false are
// written as strings only to take them from the environment.
func (r *reader) convertText(k kind, s string) (value any, template string, err error) {
	if substitutes(s) {
		template = s
	}
	expanded, err := substitute(s, r.env)
	if err != nil {
		return nil, template, err
	}
	switch k {
	case integer, boolean, texts:
		if template == "" {
			return nil, "", fmt.Errorf("it must be %v, not a string", k)
		}
	case duration:
		if _, err := strconv.ParseUint(expanded, 10, 64); err == nil {
			return nil, template, fmt.Errorf("%s has no unit; write \"%ss\" if seconds are meant", expanded, expanded)
		}
	case command:
		if expanded == "" {
			return nil, template, errors.New("it is empty; leave the key out for the default")
		}
	}
	value, err = parseText(k, expanded)
	return value, template, err
}

func (r *reader) convertList(node *unstable.Node) (list []string, template string, err error) {
	list = []string{}
	items := node.Children()
	for items.Next() {
		item := items.Node()
		if item.Kind != unstable.String {
			return nil, "", fmt.Errorf("it must be a list of strings, but has %s in it", kindName(item.Kind))
		}
		text := string(item.Data)
		if substitutes(text) {
			template = text
		}
		expanded, err := substitute(text, r.env)
		if err != nil {
			return nil, template, err
		}
		list = append(list, expanded)
	}
	return list, template, nil
}

// kindName is the usual name of a kind of value.
func kindName(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a string"
	case unstable.Bool:
		return "true or false"
	case unstable.Integer:
		return "an integer"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	default:
		return "a date or time"
	}
}
