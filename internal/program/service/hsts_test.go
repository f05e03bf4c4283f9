package service

import (
	"testing"
	"time"
)

// TestStrictTransportNeedsTLSOrASetting: with a certificate the header has a default, and
// without one only if it is set.
func TestStrictTransportNeedsTLSOrASetting(t *testing.T) {
	t.Parallel()
	none, hour := time.Duration(0), time.Hour
	for _, c := range []struct {
		cert string
		age  *time.Duration
		want string
	}{{"", nil, ""}, {"tls.pem", nil, "max-age=2592000"}, {"tls.pem", &none, "max-age=0"}, {"", &hour, "max-age=3600"}} {
		if got := (&ListenFlags{cert: c.cert, HSTS: c.age}).hsts(); got != c.want {
			t.Errorf("certificate %q, %v: %q, want %q", c.cert, c.age, got, c.want)
		}
	}
}
