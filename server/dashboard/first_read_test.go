package dashboard

import (
	"testing"
	"testing/synctest"
	"time"
)

// A request for a role waits for the first read of the database. Without one, the role
// is not reported as unknown.
func TestRoleWaitsForFirstRead(t *testing.T) {
	for name, after := range map[string]time.Duration{"in time": time.Second, "too late": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSnapshot()
				time.AfterFunc(after, func() { p.update(reading{}) })
				began := time.Now()
				read := p.awaitFirstRead(t.Context())
				if waited := time.Since(began); read != (after < firstReadWait) || waited != min(after, firstReadWait) {
					t.Errorf("returned %v after %v", read, waited)
				}
			})
		})
	}
}
