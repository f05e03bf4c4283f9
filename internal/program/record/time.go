package record

import "time"

// timeFormat is RFC 3339 with all nine digits of the nanoseconds.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// Time is a time in JSON: in UTC, with nanoseconds; null if it is zero.
type Time time.Time

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + time.Time(t).UTC().Format(timeFormat) + `"`), nil
}

// UnmarshalJSON reads the result of MarshalJSON.
func (t *Time) UnmarshalJSON(text []byte) error {
	return (*time.Time)(t).UnmarshalJSON(text)
}
