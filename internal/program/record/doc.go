// Package record holds the objects that the program prints as JSON and serves
// over HTTP, so that both show the same fields: names in snake_case, times in
// RFC 3339, and durations in seconds as numbers named …_seconds.
package record
