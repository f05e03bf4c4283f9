package pgdial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/openlimit"
)

// slowServers are servers that answer each connection after a delay.
var slowServers = []struct {
	hosts int
	delay time.Duration
}{
	{1, 6 * time.Second},
	{1, 20 * time.Second},
	{1, 50 * time.Second},
	{2, 2500 * time.Millisecond},
	{2, 8 * time.Second},
}

// openSession opens the two connections of a session as a node does: within the limit of
// a session, again after each failure.
func openSession(t *testing.T, d *Dialer, config *pgx.ConnConfig, o Options) {
	t.Helper()
	o.Opening = true
	o.Discard = func(conn *pgx.Conn) { _ = conn.Close(context.Background()) }
	series, end := openlimit.NewSeries(clocks.System()), time.Now().Add(time.Hour)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		attempt := series.Begin(openlimit.Session)
		ctx, cancel := context.WithTimeoutCause(t.Context(), attempt.Limit, openlimit.ErrTimeout)
		err := openTwo(ctx, d, config, o)
		cancel()
		if err == nil {
			d.Opened()
			return
		}
		attempt.Fail(openlimit.Explain(ctx, err))
		if time.Now().After(end) {
			t.Fatalf("no session was opened within an hour: %v", err)
		}
		time.Sleep(pause)
	}
}

// openTwo opens two connections, one after the other, and closes them.
func openTwo(ctx context.Context, d *Dialer, config *pgx.ConnConfig, o Options) error {
	first, err := d.Connect(ctx, config, o)
	if err != nil {
		return err
	}
	defer o.Discard(first)
	second, err := d.Connect(ctx, config, o)
	if err != nil {
		return err
	}
	o.Discard(second)
	return nil
}

// However slow a server is, up to 50 s, a session is opened, within three times as long as
// an opening takes whose attempts have enough time. A session needs two connections.
func TestSessionIsOpenedOnSlowServer(t *testing.T) {
	t.Parallel()
	for _, c := range slowServers {
		for name, connect := range map[string]func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error){
			"usual": nil, "with a function of the caller": pgx.ConnectConfig,
		} {
			t.Run(fmt.Sprintf("%d after %v %s", c.hosts, c.delay, name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					config := slowHosts(t, c.hosts, "", func() time.Duration { return c.delay })
					began, most := time.Now(), 3*2*c.delay
					openSession(t, New(clocks.System()), config, Options{Connect: connect})
					if took := time.Since(began); took > most {
						t.Errorf("a server that answers after %v: the session was opened after %v, want at most %v", c.delay, took, most)
					}
				})
			})
		}
	}
}

// A connection that was made does not end a series: only the second connection of each
// session is slow here.
func TestSessionIsOpenedIfItsSecondConnectionIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		config := slowHosts(t, 1, "", func() time.Duration {
			made++
			return time.Duration(1-made%2) * 20 * time.Second
		})
		began, most := time.Now(), 100*time.Second
		openSession(t, New(clocks.System()), config, Options{})
		if took := time.Since(began); took > most {
			t.Errorf("the session was opened after %v, want at most %v", took, most)
		}
	})
}

// A pool opens its connections itself. They get more time by the same rule.
func TestPoolConnectsToSlowServer(t *testing.T) {
	t.Parallel()
	for _, c := range slowServers {
		t.Run(fmt.Sprintf("%d after %v", c.hosts, c.delay), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := slowHosts(t, c.hosts, "", func() time.Duration { return c.delay })
				lookup := config.LookupFunc
				prepare := New(clocks.System()).PreparePool(config, Credentials{DSN: config.ConnString()}, Options{
					Use: Pool, Discard: func(conn *pgx.Conn) { _ = conn.Close(context.Background()) },
				})
				began, most := time.Now(), 3*2*c.delay // among several hosts, a connection finds the primary
				for {
					attempt := config.Copy()
					attempt.LookupFunc = lookup
					err := prepare(t.Context(), attempt)
					var conn *pgx.Conn
					if err == nil {
						conn, err = pgx.ConnectConfig(t.Context(), attempt)
					}
					if err == nil {
						_ = conn.Close(t.Context())
						break
					}
					if time.Since(began) > time.Hour {
						t.Fatalf("the pool has no connection after an hour: %v", err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > most {
					t.Errorf("the pool connected after %v, want at most %v", took, most)
				}
			})
		})
	}
}

// attemptsOfAnHour returns how long each attempt takes during an hour without success.
func attemptsOfAnHour(t *testing.T, d *Dialer, config *pgx.ConnConfig) (took []time.Duration) {
	t.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(2 * time.Second) {
		began := time.Now()
		if _, err := d.Connect(t.Context(), config, Options{Opening: true}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got error %v, want one about the time", err)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// A server that is reached and hangs is given up after 5 s, with several hosts after 3 s.
// This grows to 60 and 15 s. connect_timeout does not grow. The next host is tried 200 ms
// later, and ends later.
func TestAttemptsGrowWhileServerHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hosts       int
		parameters  string
		first, last time.Duration
	}{
		{1, "", 5 * time.Second, 60 * time.Second},
		{2, "", 3200 * time.Millisecond, 15200 * time.Millisecond},
		{1, "connect_timeout=3", 3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			delay := forever
			config := slowHosts(t, c.hosts, c.parameters, func() time.Duration { return delay })
			d := New(clocks.System())
			took := attemptsOfAnHour(t, d, config)
			if first, last := took[0], took[len(took)-1]; first != c.first || last != c.last || !slices.IsSorted(took) {
				t.Errorf("%d hosts %q: got attempts of %v, want %v to %v", c.hosts, c.parameters, took, c.first, c.last)
			}
			delay = 0
			openSession(t, d, config, Options{})
			delay = forever
			if again := attemptsOfAnHour(t, d, config)[0]; again != c.first {
				t.Errorf("%d hosts %q: after a session was opened, got an attempt of %v, want %v", c.hosts, c.parameters, again, c.first)
			}
		})
	}
}

// Outside of an opening, a connection that was made quickly ends the series. One that
// was slow does not.
func TestQuickConnectionEndsSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ delay, want time.Duration }{
		{time.Second, 5 * time.Second},
		{20 * time.Second, 60 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			delay := forever
			config := slowHosts(t, 1, "", func() time.Duration { return delay })
			d := New(clocks.System())
			attemptsOfAnHour(t, d, config)
			delay = c.delay
			conn, err := d.Connect(t.Context(), config, Options{Use: Question})
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close(t.Context())
			delay = forever
			if got := attemptsOfAnHour(t, d, config)[0]; got != c.want {
				t.Errorf("after a connection in %v: got an attempt of %v, want %v", c.delay, got, c.want)
			}
		})
	}
}

// A server that is not reached gets no more time: after a change of its address, the
// next attempt must not wait for the earlier one. When it is reached an hour later and
// hangs, it is given up as early.
func TestUnreachedServerGetsNoMoreTime(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[int]time.Duration{1: 5 * time.Second, 2: 3200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			config := slowHosts(t, hosts, "", func() time.Duration { return forever })
			hangs := config.DialFunc
			config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			d := New(clocks.System())
			took := attemptsOfAnHour(t, d, config)
			config.DialFunc = hangs
			took = append(took, attemptsOfAnHour(t, d, config)[0])
			for i, got := range took {
				if got != want {
					t.Fatalf("%d hosts: got an attempt of %v after %d others, want %v", hosts, got, i, want)
				}
			}
		})
	}
}
