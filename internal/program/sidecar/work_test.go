package sidecar

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// closedPool returns a pool that fails every statement.
func closedPool(t *testing.T, i *postgrestest.Installation) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), i.Pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	return pool
}

// workHandler returns a handler with a node of an installation.
func workHandler(t *testing.T, i *postgrestest.Installation, database *pgxpool.Pool) *Handler {
	t.Helper()
	h := newHandler(t, Config{Token: newToken(t), Database: database})
	h.Attach(i.Node("serve", tenure.Config{Logger: silent}))
	return h
}

// coverReads asks for what every read of schedules or processors can be answered.
// A target with a query of rows is also asked for too many.
func coverReads(t *testing.T, i *postgrestest.Installation, answered coverage, targets ...string) {
	t.Helper()
	starting, without, broken := newHandler(t, Config{}), workHandler(t, i, nil), workHandler(t, i, closedPool(t, i))
	working := workHandler(t, i, i.Pool)
	for _, target := range targets {
		answered.seen(t, working, http.MethodGet, target, "")
		answered.seen(t, working, http.MethodGet, strings.Replace(target, "count=5", "count=many", 1), "")
		for _, h := range []*Handler{starting, without, broken} {
			answered.seen(t, h, http.MethodGet, target, "")
		}
	}
}

// write is a request that changes something.
type write struct{ method, target, body string }

// coverWrites asks for what every change of schedules or processors can be answered
// because of its body, its token or its node.
func coverWrites(t *testing.T, i *postgrestest.Installation, answered coverage, writes ...write) {
	t.Helper()
	off, without, broken := newHandler(t, Config{}), workHandler(t, i, nil), workHandler(t, i, closedPool(t, i))
	working, guessing := workHandler(t, i, i.Pool), newHandler(t, Config{Token: newToken(t)})
	for range httpguard.MaxAttempts {
		call(t, guessing, http.MethodPost, writes[0].target, "", "Authorization", "Bearer wrong").want(t, http.StatusUnauthorized)
	}
	for _, w := range writes {
		answered.seen(t, off, w.method, w.target, w.body)
		answered.seen(t, working, w.method, w.target, w.body)
		answered.seen(t, working, w.method, w.target, "{", authorized...)
		answered.seen(t, working, w.method, w.target, strings.Repeat(" ", maxBody+1), authorized...)
		answered.seen(t, working, w.method, w.target, "{}", authorized[:2]...)
		for _, h := range []*Handler{without, broken, guessing} {
			answered.seen(t, h, w.method, w.target, w.body, authorized...)
		}
	}
}
