package assign_test

import (
	"strings"
	"testing"
	"time"
)

// An assigner whose table cannot be read says so, and since when, until a pass succeeds.
func TestStatusNamesFailingPasses(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	w.worker("worker")
	config := w.config()
	config.PollInterval = 20 * time.Millisecond
	a := w.assigner(w.scheduler("scheduler"), config)
	if s := a.Status(); s.Leading || s.Err != nil {
		t.Errorf("before Run: %+v", s)
	}
	stop := w.run(a)
	w.Await("a pass succeeds", func() bool { s := a.Status(); return s.Leading && !s.LastPass.IsZero() })
	table := config.Table.Sanitize()
	w.Exec("ALTER TABLE " + table + " RENAME COLUMN capability TO elsewhere")
	w.Await("the passes fail", func() bool { return a.Status().Err != nil })
	s := a.Status()
	if !s.Leading || s.Since.Before(s.LastPass) || !strings.Contains(s.Err.Error(), "capability") {
		t.Errorf("with an unreadable table: %+v; want the error that names the column, and since when", s)
	}
	w.Await("another pass fails", func() bool { return a.Status().Err != s.Err }) //nolint:errorlint // whether it is another one
	if again := a.Status(); again.Since != s.Since {
		t.Errorf("the passes fail since %v, and later since %v; want the first time", s.Since, again.Since)
	}
	w.Exec("ALTER TABLE " + table + " RENAME COLUMN elsewhere TO capability")
	w.Await("a pass succeeds again", func() bool { s := a.Status(); return s.Err == nil && s.Since.IsZero() })
	stop()
	if s := a.Status(); s.Leading {
		t.Errorf("after Run: %+v", s)
	}
}
