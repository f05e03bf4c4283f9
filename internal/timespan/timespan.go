// Package timespan bounds configured times.
package timespan

import "time"

// Longest is the longest time in a configuration, ten years: a sum of several times
// and a moment must not overflow, or it would be in the past.
const Longest = 87_600 * time.Hour
