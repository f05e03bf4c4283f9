// Package rolespec reads roles as users write them, in flags, configuration files
// and HTTP requests:
//
//	billing                  a name; the lock key is derived from it
//	billing=0x464F52470001   a name with a 64-bit lock key
//	key:42                   the role of a 64-bit key
//	pair:1,2                 the role of a pair of 32-bit keys; also key:1:2, its name
//
// Keys are decimal, or hexadecimal with 0x.
package rolespec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure"
)

const number = `(-?[0-9]+|0[xX][0-9a-fA-F]+)`

var (
	keyed  = regexp.MustCompile(`^(.+)=` + number + `$`)
	single = regexp.MustCompile(`^key:` + number + `$`)
	pair   = regexp.MustCompile(`^(?:key:` + number + `:|pair:` + number + `,)` + number + `$`)
)

// Parse returns the role denoted by a text. A role of keys has the name key:N or key:A:B,
// so a text of this form is never another role: with another lock, it could have a second
// leader.
func Parse(text string) (tenure.Role, error) {
	if match := pair.FindStringSubmatch(text); match != nil {
		first, err1 := ParseKey("the role "+text, match[1]+match[2], math.MinInt32, math.MaxInt32)
		second, err2 := ParseKey("the role "+text, match[3], math.MinInt32, math.MaxInt32)
		if err := firstOf(err1, err2); err != nil {
			return tenure.Role{}, err
		}
		return tenure.KeyPairRole(int32(first), int32(second)), nil
	}
	if match := single.FindStringSubmatch(text); match != nil {
		key, err := ParseKey("the role "+text, match[1], math.MinInt64, math.MaxInt64)
		return tenure.KeyRole(key), err
	}
	if match := keyed.FindStringSubmatch(text); len(match) > 0 && !single.MatchString(match[1]) && !pair.MatchString(match[1]) {
		key, err := ParseKey("the key of "+match[1], match[2], math.MinInt64, math.MaxInt64)
		role := tenure.NamedRole(match[1]).WithKey(key)
		return role, firstOf(err, role.Validate())
	}
	role := tenure.NamedRole(text)
	return role, role.Validate()
}

func firstOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// ParseKey returns a key between least and most. An error contains the name in what.
func ParseKey(what, text string, least, most int64) (int64, error) {
	base, digits := 10, text
	if lower := strings.ToLower(text); strings.HasPrefix(lower, "0x") {
		base, digits = 16, text[2:]
	}
	key, err := strconv.ParseInt(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%w: %s is not an integer: %q", tenure.ErrInvalidRole, what, text)
	}
	if err != nil || key < least || key > most {
		return 0, fmt.Errorf("%w: %s is out of range: %s; it must be between %d and %d", tenure.ErrInvalidRole, what, text, least, most)
	}
	return key, nil
}
