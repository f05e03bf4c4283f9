package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// The probes of the two connections must not find any of these.
func TestRefuseRejectsUnsafeServers(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good := func() probe {
		return probe{server: server{version: 140000, start: started}, name: "PostgreSQL 14.0 on Linux", locked: true}
	}
	for _, c := range []struct {
		name   string
		change func(session, watch *probe)
		want   error
	}{
		{"all is well", func(_, _ *probe) {}, nil},
		{"a pooler on the session connection", func(s, _ *probe) { s.pooled = true }, dberr.ErrPooled},
		{"a pooler on the watch connection", func(_, w *probe) { w.pooled = true }, dberr.ErrPooled},
		{"an old server", func(s, _ *probe) { s.version = oldestServer - 1 }, dberr.ErrServerTooOld},
		// Set by hand: a function without a server judges what two connections have read.
		{"two servers", func(_, w *probe) { w.start = started.Add(time.Second) }, tenure.ErrConnection},
		{"locks that exclude no session", func(_, w *probe) { w.locked = true }, ErrLocksIgnored},
		{"another database whose locks exclude no session", func(s, w *probe) { s.name, w.locked = "CockroachDB 23", true }, ErrLocksIgnored},
		{"a key that is taken", func(s, _ *probe) { s.locked = false }, tenure.ErrConnection},
	} {
		session, watch := good(), good()
		watch.locked = false
		c.change(&session, &watch)
		if err := refuse(session, watch); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
}
