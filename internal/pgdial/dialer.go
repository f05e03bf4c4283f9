package pgdial

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/openlimit"
)

// Dialer connects to the hosts of one connection string. It remembers the primary among
// them and tries it first, unless it is to be avoided. It is safe for concurrent use.
type Dialer struct {
	clock  clocks.Clock
	series *openlimit.Series // attempts with a reached address

	mu      sync.Mutex
	primary place           // where the last connection was established
	at      time.Duration   // when, on the monotonic clock
	avoided string          // the host to try last
	servers map[string]bool // addresses where no Pgpool-II answered since the last failure
}

// New returns a dialer. All its connections share one series of attempts.
func New(clock clocks.Clock) *Dialer {
	return &Dialer{clock: clock, series: openlimit.NewSeries(clock)}
}

// Opened reports an opened session: the limits of attempts are the least ones again.
func (d *Dialer) Opened() { d.series.Forget() }

// Options say how to connect.
type Options struct {
	Use    Use
	Limits Limits
	// Pooled accepts a pooler. Behind it nothing can be set for a session: only standbys
	// are passed over.
	Pooled bool
	// FencedToo also accepts a server made read-only by its own configuration.
	FencedToo bool
	// Opening is set for a connection of a session during its opening. The limits of
	// attempts stay as they are until [Dialer.Opened]. Otherwise a quick connection makes
	// them the least ones again.
	Opening bool
	// Connect is used instead of pgx.ConnectConfig, if not nil.
	Connect func(context.Context, *pgx.ConnConfig) (*pgx.Conn, error)
	// Prepare changes the configuration of one attempt. The returned function, if not nil,
	// is called if this attempt is the successful one.
	Prepare func(*pgx.ConnConfig) (won func())
	// Discard closes a surplus connection.
	Discard func(*pgx.Conn)
}

// attempt is a connection and a function to call if it is used.
type attempt struct {
	conn  *pgx.Conn
	place place
	won   func()
}

// Connect returns a connection to the primary among the hosts of a configuration. It does
// not change the configuration. The error joins the errors of all hosts.
func (d *Dialer) Connect(ctx context.Context, config *pgx.ConnConfig, o Options) (*pgx.Conn, error) {
	found, err := d.connect(ctx, config, o)
	if err != nil {
		return nil, err
	}
	if found.won != nil {
		found.won()
	}
	return found.conn, nil
}

func (d *Dialer) connect(ctx context.Context, config *pgx.ConnConfig, o Options) (attempt, error) {
	hosts := targets(config)
	known, avoided := d.lastPrimary()
	hosts = first(hosts, func(t target) bool { return t.name() == known.host })
	hosts = last(hosts, func(t target) bool { return t.name() == avoided })
	limit := bound(config)
	attempts := make([]func(context.Context) (attempt, error), len(hosts))
	for i, host := range hosts {
		attempts[i] = func(ctx context.Context) (attempt, error) {
			return d.connectHost(ctx, host, host.narrow(config), limit, known, o)
		}
	}
	found, err := race(ctx, attempts, o.discard)
	if err == nil {
		d.remember(found.place)
	}
	return found, err
}

// connectHost tries all addresses of one host.
func (d *Dialer) connectHost(ctx context.Context, host target, config *pgx.ConnConfig, limit time.Duration, known place, o Options) (attempt, error) {
	addresses, err := host.resolve(ctx, config, limit)
	if err != nil && o.Connect == nil {
		return attempt{}, describe(host, config, explainTimeout(ctx, limit, err))
	}
	if err != nil || len(addresses) == 0 { // a socket, or a name known only to the caller's function
		found, err := d.connectAddress(ctx, config, limit, place{host: host.name()}, o)
		return found, describe(host, config, err)
	}
	if len(addresses) > 1 && config.ConnectTimeout <= 0 {
		limit = min(limit, openlimit.ConnectionOfSeveral.Least)
	}
	addresses = first(addresses, func(a string) bool { return known == place{host.name(), a} })
	attempts := make([]func(context.Context) (attempt, error), len(addresses))
	for i, address := range addresses {
		attempts[i] = func(ctx context.Context) (attempt, error) {
			one := config.Copy()
			pin(one, address)
			return d.connectAddress(ctx, one, limit, place{host.name(), address}, o)
		}
	}
	found, err := race(ctx, attempts, o.discard)
	return found, describe(host, config, err)
}

// connectAddress makes one attempt.
func (d *Dialer) connectAddress(ctx context.Context, config *pgx.ConnConfig, limit time.Duration, where place, o Options) (attempt, error) {
	made := attempt{place: where}
	if o.Prepare != nil {
		made.won = o.Prepare(config)
	}
	config.ValidateConnect = d.validate(config.ValidateConnect, o)
	limited := d.begin(config, limit)
	whole := limited.Limit
	var reached atomic.Bool
	config.DialFunc = within(limit, d.forgetting(config.DialFunc), &reached)
	config.ConnectTimeout = whole
	o.addStartupParameters(config)
	limitAnswers(config, o.Use)
	var err error
	if o.Connect != nil { // it may have to fetch a token first
		made.conn, err = callConnect(ctx, config, o.Connect)
		d.end(ctx, limited, reached.Load(), o, err)
		return made, decideAddress(err)
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	// To cancel a possibly running statement, pgx dials again after an error, and its
	// goroutine would outlive this call.
	var ended atomic.Bool
	config.DialFunc = notAfter(config.DialFunc, func() bool { return ended.Load() || ctx.Err() != nil })
	made.conn, err = pgx.ConnectConfig(ctx, config)
	ended.Store(true)
	d.end(ctx, limited, reached.Load(), o, err)
	if reached.Load() {
		limit = whole
	}
	return made, decideAddress(explainTimeout(ctx, limit, err))
}

// decideAddress makes one decision of the errors with TLS and without: the
// address was reached.
func decideAddress(err error) error {
	var decided *decision
	if errors.As(err, &decided) {
		return &decision{err}
	}
	return err
}

// explainTimeout adds the setting of the bound to the error of an attempt over its bound.
func explainTimeout(ctx context.Context, limit time.Duration, err error) error {
	if err == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &late{limit, err}
}

// addStartupParameters sets the meaning of values if nothing can be set later.
func (o Options) addStartupParameters(config *pgx.ConnConfig) {
	if o.Pooled {
		maps.Copy(config.RuntimeParams, startupParameters())
	}
}

func (o Options) discard(late attempt) {
	if o.Discard != nil {
		o.Discard(late.conn)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = late.conn.Close(ctx) // it is not used
}

// Avoid makes the host of a connection the last one to try, until a connection to it
// succeeds. It is for a host without answers, or without success in opening a session: if
// its synchronous standbys follow another server, an old primary looks like a primary and
// never commits.
func (d *Dialer) Avoid(conn *pgx.Conn) {
	config := conn.Config()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.avoided = target{host: config.Host, port: config.Port}.name()
}

func (d *Dialer) lastPrimary() (known place, avoided string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.primary, d.avoided
}

func (d *Dialer) remember(where place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.primary, d.at = where, d.clock.Now().Mono
	if where.host == d.avoided {
		d.avoided = ""
	}
}

func (d *Dialer) isServer(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.servers[address]
}

// forgetting returns a dial function like dial. If an address cannot be reached, it
// forgets the server or pooler there: a pooler can take the place of a server.
func (d *Dialer) forgetting(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			d.mu.Lock()
			delete(d.servers, address)
			d.mu.Unlock()
		}
		return conn, err
	}
}

func (d *Dialer) noteServer(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.servers == nil {
		d.servers = map[string]bool{}
	}
	d.servers[address] = true
}
