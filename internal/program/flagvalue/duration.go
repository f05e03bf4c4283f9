// Package flagvalue parses the values of flags common to several commands.
package flagvalue

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/internal/program/config"
)

// Duration is a flag for "5s", "1m30s" or, in seconds, "5.0". If it must not be
// zero, zero is an error instead of the default.
type Duration struct {
	Value     time.Duration
	AllowZero bool
}

// Set implements pflag.Value.
func (d *Duration) Set(s string) error {
	parsed, err := parseDuration(s)
	switch {
	case err != nil:
		return err
	case parsed < 0:
		return fmt.Errorf("a duration must not be negative")
	case parsed == 0 && !d.AllowZero:
		return fmt.Errorf("this duration must be more than zero")
	}
	d.Value = parsed
	return nil
}

func (d *Duration) String() string {
	if d.Value == 0 {
		return ""
	}
	return config.WrittenDuration(d.Value)
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

func parseDuration(s string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		parsed, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("a duration is written like 5s, 1m30s or 5.0")
		}
		return parsed, nil
	}
	if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/float64(time.Second)/2 {
		return 0, fmt.Errorf("the duration is out of range")
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), nil
}
