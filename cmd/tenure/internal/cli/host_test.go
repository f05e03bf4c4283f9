package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// TestHostFlagDecidesWhichNamesAreServed: without --host, a server on the loopback
// interface answers no name of another machine. With it, it answers the names that are
// given, and no others.
func TestHostFlagDecidesWhichNamesAreServed(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	const given, below, other = "tenure.example.com", "a.ops.example.com", "evil.example.com"
	for name, c := range map[string]struct {
		command []string
		paths   []string
		flags   []string
		answers []string
		refuses []string
	}{
		"run": {[]string{"run", "--role", "a", "--log-level", "info"}, []string{"/v1/elections", "/metrics"}, nil, []string{"localhost"}, []string{given, below, other}},
		"run with names": {
			[]string{"run", "--role", "b", "--log-level", "info"},
			[]string{"/v1/elections", "/metrics"},
			[]string{"--host", given, "--host", "*.ops.example.com"},
			[]string{"localhost", given, below},
			[]string{other, "ops.example.com.evil.example.com"},
		},
		"run with any":     {[]string{"run", "--role", "c", "--log-level", "info"}, []string{"/v1/elections"}, []string{"--host", "*"}, []string{given, below, other}, nil},
		"serve":            {[]string{"serve", "--log-level", "info"}, []string{"/", "/v1/leaders"}, nil, []string{"localhost"}, []string{given, other}},
		"serve with names": {[]string{"serve", "--log-level", "info"}, []string{"/", "/v1/leaders"}, []string{"--host", given}, []string{"localhost", given}, []string{below, other}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := served(launch(t, place.with(append(append(c.command, "--listen", ":0"), c.flags...)...)...))
			for _, path := range c.paths {
				for _, host := range c.answers {
					if status := statusFor(t, base+path, host); status != http.StatusOK {
						t.Errorf("%s by %q: %d", path, host, status)
					}
				}
				for _, host := range c.refuses {
					if status := statusFor(t, base+path, host); status != http.StatusMisdirectedRequest {
						t.Errorf("%s by %q: %d; want %d", path, host, status, http.StatusMisdirectedRequest)
					}
				}
			}
		})
	}
	refused := invoke(t, place.with("run", "--role", "a", "--host", given)...).want(t, console.ExitUsage)
	if !strings.Contains(refused.stderr, "--host requires --listen") {
		t.Errorf("without --listen: %q", refused.stderr)
	}
}

// statusFor requests a URL by a host name until its server has a node, and returns the status.
func statusFor(t *testing.T, url, host string) (status int) {
	t.Helper()
	eventually(t, url, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		status = response.StatusCode
		return status != http.StatusServiceUnavailable
	})
	return status
}
