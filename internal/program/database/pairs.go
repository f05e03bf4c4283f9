package database

import "strings"

// takeFromPairs returns a list of key=value pairs without a key, and the key's
// values. All else stays as it was written. The rules are libpq's: spaces may
// surround the equals sign, single quotes enclose values with spaces, and a
// backslash takes the next character literally.
func takeFromPairs(dsn, name string) (rest string, values []string) {
	var kept strings.Builder
	for left := dsn; left != ""; {
		key, value, length := firstPair(left)
		if key == name {
			values = append(values, value)
		} else {
			kept.WriteString(left[:length])
		}
		left = left[length:]
	}
	return strings.TrimRight(kept.String(), spaces), values
}

// spaces are libpq's white space.
const spaces = " \t\n\r\v\f"

// firstPair reads the first pair of a list and returns its length, with the white space
// around it. Text without a pair is left to the driver to refuse: it has no key here and
// reaches to the end.
func firstPair(list string) (key, value string, length int) {
	before, after, found := strings.Cut(list, "=")
	key = strings.Trim(before, spaces)
	if !found || strings.ContainsAny(key, spaces) {
		return "", "", len(list)
	}
	after = strings.TrimLeft(after, spaces)
	quoted := strings.HasPrefix(after, "'")
	after = strings.TrimPrefix(after, "'")

	var text strings.Builder
	at := 0
	for ; at < len(after); at++ {
		switch c := after[at]; {
		case c == '\\' && at+1 < len(after):
			at++
		case quoted && c == '\'':
			rest := strings.TrimLeft(after[at+1:], spaces)
			return key, text.String(), len(list) - len(rest)
		case !quoted && strings.IndexByte(spaces, c) >= 0:
			rest := strings.TrimLeft(after[at:], spaces)
			return key, text.String(), len(list) - len(rest)
		}
		text.WriteByte(after[at])
	}
	return key, text.String(), len(list)
}
