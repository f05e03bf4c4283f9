package pgdial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// useAddresses leads each host to the address of hostaddr. TLS still verifies the names of
// the hosts. The address replaces a missing host or a socket.
func (r *reading) useAddresses(value string) error {
	addresses := strings.Split(value, ",")
	hosts := r.listed()
	if len(hosts) == 1 && (hosts[0].isSocket() || hosts[0].host == "localhost") { // none is named
		for len(hosts) < len(addresses) {
			hosts = append(hosts, hosts[0])
		}
	}
	if len(addresses) != len(hosts) {
		return fmt.Errorf("must have as many addresses as host has names: %d and not %d", len(hosts), len(addresses))
	}
	names, ports := make([]string, len(hosts)), make([]string, len(hosts))
	byHost := map[string][]string{}
	for i, host := range hosts {
		names[i], ports[i] = host.host, strconv.Itoa(int(host.port))
		address := strings.TrimSpace(addresses[i])
		switch {
		case address == "":
			continue
		case net.ParseIP(strings.SplitN(address, "%", 2)[0]) == nil:
			return errors.New("must be numeric IP addresses")
		case host.isSocket():
			names[i] = address
		}
		byHost[names[i]] = append(byHost[names[i]], net.JoinHostPort(address, ports[i]))
	}
	// TLS and the password file follow the host.
	parameters, dsn := r.config.RuntimeParams, r.dsn
	r.dsn = with(with(dsn, "host", strings.Join(names, ",")), "port", strings.Join(ports, ","))
	err := r.parse()
	r.dsn = dsn
	if err != nil {
		return fmt.Errorf("does not fit: %w", err)
	}
	r.config.RuntimeParams = parameters
	r.addresses = byHost
	lookUp := r.config.LookupFunc
	r.config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		found := byHost[host]
		if len(found) == 0 {
			return lookUp(ctx, host)
		}
		if port, ok := ctx.Value(portOf{}).(string); ok { // the same host may be listed with other ports
			found = slices.DeleteFunc(slices.Clone(found), func(a string) bool { return !strings.HasSuffix(a, ":"+port) })
		}
		return found, nil
	}
	return nil
}

// listed returns the hosts as they were listed, repeated ones too.
func (r *reading) listed() []target {
	type way struct {
		host string
		port uint16
		tls  *tls.Config
	}
	ways := []way{{r.config.Host, r.config.Port, r.config.TLSConfig}}
	for _, f := range r.config.Fallbacks {
		ways = append(ways, way{f.Host, f.Port, f.TLSConfig})
	}
	var hosts []target
	for i := 0; i < len(ways); i++ {
		host := target{host: ways[i].host, port: ways[i].port}
		hosts = append(hosts, host)
		// Two ways of one host, with TLS and without, follow each other.
		if i+1 < len(ways) && ways[i+1].host == host.host && ways[i+1].port == host.port && (ways[i].tls == nil) != (ways[i+1].tls == nil) {
			i++
		}
	}
	return hosts
}

// tls returns the ways of a configuration to use TLS.
func (r *reading) tls() []*tls.Config {
	var found []*tls.Config
	for _, host := range targets(r.config) {
		for _, way := range host.tls {
			if way != nil {
				found = append(found, way)
			}
		}
	}
	return found
}
