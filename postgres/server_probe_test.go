package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// The probes of the two connections must not find any of these.
func TestRefuseRejectsUnsafeServers(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good := func() server.Probe {
		return server.Probe{Server: server.Server{Version: 140000, Start: started}, Name: "PostgreSQL 14.0 on Linux", Locked: true}
	}
	for _, c := range []struct {
		name   string
		change func(session, watch *server.Probe)
		want   error
	}{
		{"all is well", func(_, _ *server.Probe) {}, nil},
		{"a pooler on the session connection", func(s, _ *server.Probe) { s.Pooled = true }, dberr.ErrPooled},
		{"a pooler on the watch connection", func(_, w *server.Probe) { w.Pooled = true }, dberr.ErrPooled},
		{"an old server", func(s, _ *server.Probe) { s.Version = oldestServer - 1 }, dberr.ErrServerTooOld},
		// Set by hand: a function without a server judges what two connections have read.
		{"two servers", func(_, w *server.Probe) { w.Start = started.Add(time.Second) }, tenure.ErrConnection},
		{"locks that exclude no session", func(_, w *server.Probe) { w.Locked = true }, ErrLocksIgnored},
		{"another database whose locks exclude no session", func(s, w *server.Probe) { s.Name, w.Locked = "CockroachDB 23", true }, ErrLocksIgnored},
		{"a key that is taken", func(s, _ *server.Probe) { s.Locked = false }, tenure.ErrConnection},
	} {
		session, watch := good(), good()
		watch.Locked = false
		c.change(&session, &watch)
		if err := refuse(session, watch); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
}
