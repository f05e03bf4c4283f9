package pgdial

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/internal/openlimit"
)

// begin begins an attempt. Its limit holds if it reaches the address. connect_timeout is for
// all of it, and does not grow.
func (d *Dialer) begin(config *pgx.ConnConfig, limit time.Duration) openlimit.Attempt {
	rule := openlimit.Connection
	switch {
	case config.ConnectTimeout > 0:
		rule = openlimit.Rule{Least: limit, Most: limit}
	case limit < openlimit.Connection.Least:
		rule = openlimit.ConnectionOfSeveral
	}
	return d.series.Begin(rule)
}

// end ends an attempt. Without reaching its address it gets no more time.
func (d *Dialer) end(ctx context.Context, attempt openlimit.Attempt, reached bool, o Options, err error) {
	switch {
	case err == nil:
		if !o.Opening && attempt.Quick() {
			d.series.Forget()
		}
	case reached:
		attempt.Fail(openlimit.Explain(ctx, err))
	}
}

// within returns a dial function like dial, limited to limit. It records whether it
// reached the address.
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

// limitPool limits an attempt of a pool, as connectAddress does, and records its end.
// config belongs to the attempt alone.
func (d *Dialer) limitPool(config, original *pgx.ConnConfig, o Options) {
	limit := bound(original)
	attempt := d.begin(original, limit)
	config.ConnectTimeout = attempt.Limit
	var reached atomic.Bool
	dial := within(limit, config.DialFunc, &reached)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil { // the driver ends ctx when the attempt has ended
			context.AfterFunc(ctx, func() { attempt.Fail(ctx.Err()) })
		}
		return conn, err
	}
	validate := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		err := validate(ctx, conn)
		if err == nil {
			d.end(ctx, attempt, true, o, nil)
		}
		return err
	}
}
