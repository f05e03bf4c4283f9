package pgdial

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/openlimit"
)

// How long an attempt may take once the address is reached, as long as the server does
// not refuse it. Where another address can be tried, a server that hangs must not
// delay the next round of attempts for long.
var (
	ruleOfOne     = openlimit.Rule{Least: timeoutOfOne, Most: time.Minute, Part: 4}
	ruleOfSeveral = openlimit.Rule{Least: timeoutOfSeveral, Most: 15 * time.Second, Part: 8}
)

// limit returns how long an attempt may take if it reaches the address. connect_timeout
// is for all of it, and does not grow.
func (d *Dialer) limit(config *pgx.ConnConfig, limit time.Duration) time.Duration {
	if config.ConnectTimeout > 0 {
		return limit
	}
	rule := ruleOfOne
	if limit < timeoutOfOne {
		rule = ruleOfSeveral
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late.Limit(clocks.System().Now().Mono, rule)
}

// noteEnd notes how an attempt ended. One that did not reach its address gets no more
// time.
func (d *Dialer) noteEnd(begun time.Duration, reached bool, err error) {
	if !reached {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late.Note(begun, err)
}

// within returns a function that dials as dial does, but for at most limit, and notes
// whether it reached the address.
func within(limit time.Duration, dial pgconn.DialFunc, reached *atomic.Bool) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err == nil {
			reached.Store(true)
		}
		return conn, err
	}
}
