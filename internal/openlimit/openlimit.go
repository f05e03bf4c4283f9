// Package openlimit bounds attempts to open a session or a connection.
//
// Many programs that connect at the same time, as after a restart of the server, make
// it slow for all of them. If each gave up after the same time, the server would spend its
// time on attempts that come to nothing, and none would ever succeed. So the limit grows
// with the time since the first attempt that took too long.
package openlimit

import "time"

// Rule is how a limit grows.
type Rule struct {
	Least, Most time.Duration
	Part        int // the limit is the time since the first late attempt began, divided by this
}

// Series is a series of attempts. The zero value has none. It is not safe for concurrent
// use.
type Series struct {
	late  bool
	since time.Duration // when the first late attempt began
}

// Late notes an attempt that took too long. It began at that time of a monotonic clock.
func (s *Series) Late(begun time.Duration) {
	if !s.late {
		s.late, s.since = true, begun
	}
}

// Limit returns how long an attempt may take that begins now.
func (s *Series) Limit(now time.Duration, r Rule) time.Duration {
	if !s.late {
		return r.Least
	}
	return min(max(r.Least, (now-s.since)/time.Duration(r.Part)), r.Most)
}
