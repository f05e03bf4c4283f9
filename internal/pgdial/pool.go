package pgdial

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fresh is how long the place of the primary is taken as known.
const fresh = time.Second

// PreparePool prepares the configuration of a pool, because a pool opens connections
// itself: each of its connections is checked, and gets its settings. The pool must call
// prepare before it connects: prepare renews its credentials, and leads it to the primary
// among several hosts.
func (d *Dialer) PreparePool(config *pgx.ConnConfig, login Credentials, o Options) (prepare func(context.Context, *pgx.ConnConfig) error) {
	original := config.Copy()
	config.ConnectTimeout = bound(original)
	o.addStartupParameters(config)
	limitAnswers(config, o.Use)
	config.ValidateConnect = d.validate(original.ValidateConnect, o)
	config.DialFunc = d.forgetting(config.DialFunc)
	return func(ctx context.Context, config *pgx.ConnConfig) error {
		current := original.Copy()
		if err := login.Renew(ctx, current); err != nil {
			return err
		}
		logInAs(config, current)
		if err := d.locate(ctx, current, config, o); err != nil {
			return err
		}
		d.limitPool(config, current, o)
		return nil
	}
}

func (d *Dialer) locate(ctx context.Context, original, config *pgx.ConnConfig, o Options) error {
	hosts := targets(original)
	if len(hosts) == 1 && (hosts[0].isSocket() || net.ParseIP(hosts[0].host) != nil) {
		return nil // there is nothing to find
	}
	d.mu.Lock()
	known := d.primary
	recent := known.host != "" && d.clock.Now().Mono-d.at < fresh
	d.mu.Unlock()
	if !recent {
		found, err := d.connect(ctx, original, o)
		if err != nil {
			return Explain(err)
		}
		o.discard(found)
		known = found.place
	}
	for _, host := range hosts {
		if host.name() == known.host {
			narrowed := host.narrow(original)
			logInAs(config, narrowed)
			if known.address != "" {
				pin(config, known.address)
			}
		}
	}
	return nil
}

// validate checks a connection and makes its settings. Only then it checks the string's
// target_session_attrs: the result must not depend on the settings of a role.
func (d *Dialer) validate(then pgconn.ValidateConnectFunc, o Options) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := d.check(ctx, conn, o); err != nil || then == nil {
			return err
		}
		return then(ctx, conn)
	}
}

func notAfter(dial pgconn.DialFunc, ended func() bool) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if ended() {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, address)
	}
}
