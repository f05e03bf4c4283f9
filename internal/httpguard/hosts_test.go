package httpguard

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
)

// TestHostsAcceptsOwnNamesOnly: no name that a stranger can register is answered, unless it was given.
func TestHostsAcceptsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const loopback, network = "127.0.0.1", "10.1.2.3"
	for _, c := range []struct {
		local string
		names []string
		host  string
		want  bool
	}{
		{loopback, nil, "localhost:8080", true}, {loopback, nil, "LOCALHOST.", true}, {loopback, nil, "a.localhost", true},
		{loopback, nil, "127.0.0.1", true}, {loopback, nil, "127.9.9.9:80", true}, {loopback, nil, "[::1]:8080", true}, {loopback, nil, machine + ":8080", true},
		{loopback, nil, "evil.example", false}, {loopback, nil, "127.0.0.1.evil.example", false}, {loopback, nil, "localhost.evil.example", false},
		{loopback, nil, "evil", false}, {loopback, nil, "evil.local", false}, {loopback, nil, "", false}, {loopback, nil, "10.1.2.3", false}, {loopback, nil, "[fe80::1]", false},
		{loopback, []string{"*"}, "evil.example", true}, {loopback, []string{"Dash.example"}, "dash.EXAMPLE:443", true}, {loopback, []string{"dash.example:443"}, "dash.example", false},
		{loopback, []string{"*.Example"}, "a.b.example:1", true}, {loopback, []string{"*.example"}, "example", false}, {loopback, []string{"*.example"}, "badexample", false},

		{network, nil, "10.1.2.3:8080", true}, {network, nil, "203.0.113.9", true}, {network, nil, "[2001:db8::1]:80", true}, {network, nil, "localhost", true},
		{network, nil, "tenure", true}, {network, nil, "tenure:8080", true}, {network, nil, "tenure.monitoring.svc", true}, {network, nil, "tenure.monitoring.svc.cluster.local:8080", true},
		{network, nil, "ip-10-1-2-3.eu-central-1.compute.internal", true}, {network, nil, "box.local", true}, {network, nil, "", true},
		{network, nil, "evil.example", false}, {network, nil, "10.1.2.3.evil.example", false}, {network, nil, "svc.evil.example", false}, {network, nil, "tenure.monitoring", false},
		{network, []string{"tenure.example.com"}, "tenure.example.com", true}, {network, []string{"tenure.example.com"}, "evil.example", false}, {network, []string{"tenure.example.com"}, "10.1.2.3", true},
		{network, []string{AnyHost}, "evil.example", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.local)}))
		if got := NewHosts(c.names...).Known(r); got != c.want {
			t.Errorf("%q on %s with %q: %v", c.host, c.local, c.names, got)
		}
	}
}

// TestClientIsTheAddressBehindTrustedProxies: clients are distinguished by address, and of IPv6 by network.
func TestClientIsTheAddressBehindTrustedProxies(t *testing.T) {
	t.Parallel()
	proxies := Proxies{netip.MustParsePrefix("192.0.2.0/24")}
	for _, c := range []struct{ from, forwarded, want string }{
		{"198.51.100.7:80", "", "198.51.100.7"}, {"[2001:db8::1]:80", "", "2001:db8::/64"}, {"[::ffff:198.51.100.7]:80", "", "198.51.100.7"}, {"[fe80::1%eth0]:80", "", "fe80::/64"},
		{"198.51.100.7:80", "203.0.113.1", "198.51.100.7"}, {"192.0.2.1:80", "203.0.113.1", "203.0.113.1"}, {"192.0.2.1:80", "1.1.1.1, 2001:db8::9", "2001:db8::/64"},
		{"192.0.2.1:80", "", "192.0.2.1"}, {"192.0.2.1:80", "nonsense", "unknown"}, {"@", "", "unknown"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = c.from
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := proxies.Client(r); got != c.want {
			t.Errorf("from %s by %q: %s, want %s", c.from, c.forwarded, got, c.want)
		}
	}
}
