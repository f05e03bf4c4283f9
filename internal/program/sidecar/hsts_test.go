package sidecar

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// TestStrictTransportIsSentOverTLSOnly: the header is in answers over TLS, to the server or
// to a trusted proxy, also where the page answers, and in no other.
func TestStrictTransportIsSentOverTLSOnly(t *testing.T) {
	t.Parallel()
	const want = "max-age=60"
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := newHandler(t, Config{HSTS: want, Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Page: page})
	without := newHandler(t, Config{})
	for name, c := range map[string]struct {
		tls         bool
		from, proto string
		want        string
	}{
		"TLS": {tls: true, from: "198.51.100.1:1", want: want}, "no TLS": {from: "198.51.100.1:1"},
		"TLS to a proxy": {from: "192.0.2.1:1", proto: "https", want: want}, "no TLS to a proxy": {from: "192.0.2.1:1", proto: "http"},
		"a client that claims TLS": {from: "198.51.100.1:1", proto: "https"},
	} {
		for _, path := range []string{"/healthz", "/v1/leaders", "/"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.Host, r.RemoteAddr = "localhost", c.from
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			if c.proto != "" {
				r.Header.Set("X-Forwarded-Proto", c.proto)
			}
			for handler, want := range map[*Handler]string{h: c.want, without: ""} {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, r)
				if got := answer.Header().Get("Strict-Transport-Security"); got != want {
					t.Errorf("%s, %s, with the setting %q: %q, want %q", name, path, handler.config.HSTS, got, want)
				}
			}
		}
	}
}
