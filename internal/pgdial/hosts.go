package pgdial

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/internal/openlimit"
)

// bound returns the bound of one attempt to connect to one address, from the name's
// resolution to the answer of the first statement, before limits grow.
func bound(config *pgx.ConnConfig) time.Duration {
	switch {
	case config.ConnectTimeout > 0:
		return config.ConnectTimeout
	case len(targets(config)) > 1:
		return openlimit.ConnectionOfSeveral.Least
	default:
		return openlimit.Connection.Least
	}
}

// stagger is the delay before the next host is tried in parallel.
const stagger = 200 * time.Millisecond

// target is one host of a connection string, with its ways to use TLS.
type target struct {
	host string
	port uint16
	tls  []*tls.Config // nil is without
}

// targets returns the hosts of a configuration, in order.
func targets(config *pgx.ConnConfig) []target {
	found := []target{{config.Host, config.Port, []*tls.Config{config.TLSConfig}}}
	for _, f := range config.Fallbacks {
		at := slices.IndexFunc(found, func(t target) bool { return t.host == f.Host && t.port == f.Port })
		if at < 0 {
			found = append(found, target{f.Host, f.Port, nil})
			at = len(found) - 1
		}
		found[at].tls = append(found[at].tls, f.TLSConfig)
	}
	return found
}

// narrow makes a configuration lead to one host only.
func (t target) narrow(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	config.Host, config.Port, config.TLSConfig = t.host, t.port, t.tls[0]
	config.Fallbacks = nil
	for _, way := range t.tls[1:] {
		config.Fallbacks = append(config.Fallbacks, &pgconn.FallbackConfig{Host: t.host, Port: t.port, TLSConfig: way})
	}
	return config
}

func (t target) name() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// isSocket reports whether the host is the directory of a Unix socket.
func (t target) isSocket() bool {
	network, _ := pgconn.NetworkAddress(t.host, t.port)
	return network == "unix"
}

// place is where a connection was established: a host, and one of its addresses.
type place struct{ host, address string }

// resolve returns the addresses of a host, none if it is to be left to pgx.
func (t target) resolve(ctx context.Context, config *pgx.ConnConfig, limit time.Duration) ([]string, error) {
	if t.isSocket() || config.LookupFunc == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return config.LookupFunc(context.WithValue(ctx, portOf{}, strconv.Itoa(int(t.port))), t.host)
}

// portOf is the key of the port, in the context of a look-up, for hostaddr.
type portOf struct{}

// pin makes a configuration lead to one address of its host.
func pin(config *pgx.ConnConfig, address string) {
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{address}, nil }
}

// last moves an element to the end, the rest keeps its order.
func last[T any](all []T, chosen func(T) bool) []T {
	at := slices.IndexFunc(all, chosen)
	if at < 0 {
		return all
	}
	moved := append(slices.Clone(all[:at]), all[at+1:]...)
	return append(moved, all[at])
}

// first moves an element to the front, the rest keeps its order.
func first[T any](all []T, chosen func(T) bool) []T {
	at := slices.IndexFunc(all, chosen)
	if at <= 0 {
		return all
	}
	moved := append([]T{all[at]}, all[:at]...)
	return append(moved, all[at+1:]...)
}
