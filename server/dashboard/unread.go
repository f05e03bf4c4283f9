package dashboard

import (
	"cmp"
	"errors"
	"time"

	"github.com/exactly-one/tenure/dberr"
)

// unread is since when a part of the state cannot be read, while the rest can.
type unread struct {
	readAt time.Time // when it was read last
	since  time.Time // zero while it can be read
}

// note notes the result of a read. If the database's user was never permitted to read
// something, it is not shown, so it has no age.
func (u *unread) note(at time.Time, err error) {
	switch {
	case err == nil:
		u.readAt, u.since = at, time.Time{}
	case u.readAt.IsZero() && errors.Is(err, dberr.ErrPrivilege), !u.since.IsZero():
	default:
		u.since = cmp.Or(u.readAt, at)
	}
}

// at is since when it cannot be read, by a clock with an offset, or nil.
func (u *unread) at(offset time.Duration) *time.Time {
	if u.since.IsZero() {
		return nil
	}
	since := u.since.Add(offset).Round(0)
	return &since
}

// asOf states the age of a sentence's data, after a space, or nothing.
func asOf(unreadSince *time.Time) string {
	if unreadSince == nil {
		return ""
	}
	return " That was at " + moment(*unreadSince) + "; now it cannot be read."
}
