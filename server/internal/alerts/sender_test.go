package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/program/notifier"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

// holds is a rule that always fires.
func holds(name string, notify ...string) Rule {
	return Rule{Name: name, Condition: "vector(1)", Severity: "warning", Notify: notify}
}

// hook starts a receiver that answers what judge says, and returns its URL and the
// texts that it acknowledged.
func hook(t *testing.T, judge func(body string) int) (url string, taken func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status := judge(string(body))
		if status == http.StatusOK {
			mu.Lock()
			all = append(all, string(body))
			mu.Unlock()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func (w *world) settled(rule, status string) func() bool {
	return func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE rule = $1 AND status = $2 AND attempts > 0`, rule, status) == 1
	}
}

// TestRejectedAlertDoesNotBlockOthers: an alert that a receiver refuses for good holds up no other,
// neither one of the same message nor a later one.
func TestRejectedAlertDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, taken := hook(t, func(body string) int {
		if strings.Contains(body, `"bad"`) {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: url, PerMinute: 6000})
	rules := []Rule{holds("first", "hook"), holds("bad", "hook"), holds("third", "hook")}
	database := &deferring{Pool: w.pool}
	p := w.start("a", Config{Rules: rules, Database: database})
	w.await("that the good ones are sent", func() bool { return w.settled("first", "sent")() && w.settled("third", "sent")() })
	w.await("that the bad one is refused alone", func() bool {
		return value[int](w, `SELECT count(*) FROM {alert_notifications} WHERE rule = 'bad' AND last_error LIKE '%answered 400' AND status = 'pending'`) == 1
	})
	w.exec(`UPDATE {alert_notifications} SET next_attempt_at = clock_timestamp() WHERE rule = 'bad'`)
	if err := p.engine.Reload(append(rules, holds("later", "hook")), w.set); err != nil {
		t.Fatal(err)
	}
	w.await("that a later one is sent", w.settled("later", "sent"))
	for _, body := range taken() {
		if strings.Contains(body, `"bad"`) {
			t.Errorf("acknowledged was %s", body)
		}
	}
	if most := database.most.Load(); most != 1 {
		t.Errorf("%d alerts were put off together", most)
	}
}

// deferring is a database that counts how many notifications one statement put off.
type deferring struct {
	*pgxpool.Pool
	most atomic.Int64
}

func (d *deferring) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if strings.Contains(sql, "2.5 * 2 ^") {
		ids, _ := args[0].([]uuid.UUID)
		d.most.Store(max(d.most.Load(), int64(len(ids))))
	}
	return d.Pool.Exec(ctx, sql, args...)
}

// TestFailingAddressDoesNotBlockOthers: a channel that is gone holds up no other of its notifier.
func TestFailingAddressDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, _ := hook(t, func(body string) int {
		if strings.Contains(body, `"#gone"`) {
			return http.StatusNotFound
		}
		return http.StatusOK
	})
	w.set = w.notifiers(notifiers.Config{Name: "slack", Type: notifier.Slack, URL: url, PerMinute: 6000})
	for range 50 { // more than one message
		w.note("old", "critical", false, 0)
		w.exec(`UPDATE {alert_notifications} SET notifier = 'slack', address = 'slack:#gone', fingerprint = id::text WHERE notifier = 'hook'`)
	}
	w.start("a", Config{Rules: []Rule{holds("new", "slack:#ops")}})
	w.await("that the other channel is notified", w.settled("new", "sent"))
}

// forgetful is a database that does not take the first notes of what was sent.
type forgetful struct {
	*pgxpool.Pool
	mu    sync.Mutex
	fails int
}

func (d *forgetful) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if strings.Contains(sql, "SET status = 'sent'") {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fails > 0 {
			d.fails--
			return pgconn.CommandTag{}, errors.New("it hangs")
		}
	}
	return d.Pool.Exec(ctx, sql, args...)
}

// TestAcknowledgedNotificationIsRecordedLater: what was acknowledged while the database could not be written is
// recorded later, and not sent again.
func TestAcknowledgedNotificationIsRecordedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, taken := hook(t, func(string) int { return http.StatusOK })
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: url})
	w.start("a", Config{Rules: []Rule{holds("r", "hook")}, Database: &forgetful{Pool: w.pool, fails: 1}})
	w.await("that it is sent", func() bool { return len(taken()) > 0 })
	w.exec(`UPDATE {alert_notifications} SET next_attempt_at = clock_timestamp()`)
	w.await("that it is noted", w.settled("r", "sent"))
	if n := len(taken()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestReloadKeepsNotesOfSentNotifications: what was acknowledged is not sent again because the
// notifiers change before it is recorded.
func TestReloadKeepsNotesOfSentNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, taken := hook(t, func(string) int { return http.StatusOK })
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: url})
	rules := []Rule{holds("r", "hook")}
	p := w.start("a", Config{Rules: rules, Database: &forgetful{Pool: w.pool, fails: 3}})
	w.await("that it is sent", func() bool { return len(taken()) > 0 })
	if err := p.engine.Reload(rules, w.set); err != nil {
		t.Fatal(err)
	}
	w.await("that it is noted", w.settled("r", "sent"))
	if n := len(taken()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestStepDownNotesSentNotifications: what was acknowledged is not sent again by the next leader
// because this one ends in good order before it is recorded.
func TestStepDownNotesSentNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, taken := hook(t, func(string) int { return http.StatusOK })
	w.set = w.notifiers(notifiers.Config{Name: "hook", Type: notifier.Webhook, URL: url})
	database := &forgetful{Pool: w.pool, fails: 1}
	p := w.start("a", Config{Rules: []Rule{holds("r", "hook")}, Database: database})
	w.await("that it is not noted", func() bool {
		database.mu.Lock()
		defer database.mu.Unlock()
		return len(taken()) == 1 && database.fails == 0
	})
	p.stop()
	if !w.settled("r", "sent")() {
		t.Error("it is not noted")
	}
}

// TestRetryAfterIsHonored: a receiver that says when to try again is left alone until then,
// with all that is for it.
func TestRetryAfterIsHonored(t *testing.T) {
	t.Parallel()
	asks := &notifiers.RetryAfterError{Delay: time.Minute, Err: errors.New("it answered 429")}
	for _, test := range []struct {
		err      error
		failures int
		want     time.Duration
	}{
		{errors.New("it answered 500"), 0, leastPause},
		{errors.New("it answered 500"), 2, 4 * leastPause},
		{errors.New("it answered 500"), 99, mostPause},
		{errors.Join(errors.New("another"), fmt.Errorf("the notifier: %w", asks)), 0, time.Minute},
		{&notifiers.RetryAfterError{Err: errors.New("without a pause")}, 1, 2 * leastPause},
	} {
		if got := pauseAfter(test.err, test.failures); got != test.want {
			t.Errorf("after %v the pause is %v; want %v", test.err, got, test.want)
		}
	}
}
