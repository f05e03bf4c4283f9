package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// kind is the type of a key's values.
type kind int

const (
	text     kind = iota // string
	duration             // time.Duration
	integer              // int64
	boolean              // bool
	texts                // []string
	command              // []string: the program and its arguments
)

// String describes the values of the kind.
func (k kind) String() string {
	switch k {
	case text:
		return "a string"
	case duration:
		return `a duration like "5s"`
	case integer:
		return "an integer"
	case boolean:
		return "true or false"
	case texts:
		return "a list of strings"
	case command:
		return "a list of strings, or one string for the shell"
	}
	return "a value"
}

// parseText reads a value written as a text: in a variable of the environment, or in the
// file with a ${VARIABLE} in it. A list is separated by commas.
func parseText(k kind, s string) (any, error) {
	switch k {
	case text:
		return s, nil
	case duration:
		return parseDuration(s)
	case integer:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, errors.New("it must be an integer")
		}
		return n, nil
	case boolean:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, errors.New("it must be true or false")
		}
		return b, nil
	case texts:
		var list []string
		for item := range strings.SplitSeq(s, ",") {
			list = append(list, strings.TrimSpace(item))
		}
		return list, nil
	case command:
		return shellCommand(s), nil
	}
	return nil, fmt.Errorf("it must be %v", k)
}

// shellCommand is a command written as one string.
func shellCommand(line string) []string { return []string{"/bin/sh", "-c", line} }

// checkValue applies the check of a key.
func checkValue(k *key, value any) error {
	switch value := value.(type) {
	case string:
		free := strings.HasSuffix(k.path, ".*") // an empty label is the user's business
		if value == "" && !free {
			return errors.New("it is empty; leave the key out for the default")
		}
	case []string:
		for i, item := range value {
			if item == "" && (k.kind == texts || i == 0) {
				return errors.New("an element is empty")
			}
		}
		if len(value) == 0 {
			return errors.New("it is empty; leave the key out for the default")
		}
	}
	if k.check == nil {
		return nil
	}
	return k.check(value)
}

// parseDuration reads "5s", "1m30s" and, as seconds, "5.0" and "5".
func parseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		return secondsDuration(seconds)
	}
	parsed, err := time.ParseDuration(s)
	if err == nil {
		return parsed, nil
	}
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ ")
	if unit := strings.TrimSpace(s[len(number):]); number != "" && unit != "" {
		if _, err := strconv.ParseFloat(number, 64); err == nil && !isUnit(unit) {
			return 0, fmt.Errorf("%q is not a unit of time; the units are h, m, s, ms, us and ns%s", unit, unitHint(number, unit))
		}
	}
	return 0, errors.New("a duration is written like 5s, 1m30s or 5.0")
}

func isUnit(s string) bool {
	_, err := time.ParseDuration("1" + s)
	return err == nil
}

// unitHint offers the right form of a foreign unit.
func unitHint(number, unit string) string {
	units := map[string]string{
		"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
		"hr": "h", "hrs": "h", "hour": "h", "hours": "h", "msec": "ms", "millis": "ms", "milliseconds": "ms",
	}
	number = strings.TrimSpace(number)
	if right, ok := units[strings.ToLower(unit)]; ok {
		return fmt.Sprintf(`: write "%s%s"`, number, right)
	}
	if days, err := strconv.ParseUint(number, 10, 16); err == nil && strings.HasPrefix(strings.ToLower(unit), "d") {
		return fmt.Sprintf(`: write "%dh"`, days*24)
	}
	return ""
}

func secondsDuration(seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/float64(time.Second)/2 {
		return 0, errors.New("the duration is out of range")
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), nil
}

// WrittenDuration is the shortest form of a duration: 1m, not 1m0s.
func WrittenDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
