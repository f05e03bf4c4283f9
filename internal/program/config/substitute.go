package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Environment returns the value of a variable and whether it is set; os.LookupEnv
// is the one of the process.
type Environment func(name string) (value string, set bool)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// substitute replaces ${NAME} by the variable's value, and ${NAME:-default} by the
// default if the variable is not set or empty; "$${" yields "${". It works on values, not
// on the file's text, so no variable can add a key.
func substitute(s string, env Environment) (string, error) {
	var out strings.Builder
	for {
		start := strings.Index(s, "${")
		if start < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if start > 0 && s[start-1] == '$' {
			out.WriteString(s[:start-1] + "${")
			s = s[start+2:]
			continue
		}
		out.WriteString(s[:start])
		inside, rest, closed := strings.Cut(s[start+2:], "}")
		if !closed {
			return "", errors.New("a ${ has no closing }; write $${ for the characters themselves")
		}
		name, fallback, hasFallback := strings.Cut(inside, ":-")
		if !variableName.MatchString(name) {
			return "", errors.New("a ${ } does not hold the name of a variable; write ${NAME} or ${NAME:-default}, and $${ for the characters themselves")
		}
		value, set := env(name)
		switch {
		case hasFallback && value == "":
			value = fallback
		case !set:
			return "", fmt.Errorf("the variable %s is not set; set it, or write ${%s:-default}", name, name)
		}
		out.WriteString(value)
		s = rest
	}
}

// substitutes reports whether a text refers to the environment.
func substitutes(s string) bool { return strings.Contains(s, "${") }
