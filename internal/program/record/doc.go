// Package record holds the objects of the program's JSON output and HTTP answers, so that
// both show the same fields: names in snake_case, times in RFC 3339, and durations in
// seconds as numbers named …_seconds.
package record
