package postgres

import (
	"strings"
	"testing"
	"time"
)

// A server that refuses a statement and notifies a session again and again does not keep
// the node busy with that statement.
func TestRefusedReportOfAWatchIsRepeatedAfterAPause(t *testing.T) {
	t.Parallel()
	const notifications = 20
	log := new(logBuffer)
	b := newBackend(t)
	p := open(t, b, logTo(log))
	exec(t, b, `CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END'`)
	exec(t, b, "CREATE TRIGGER refuse BEFORE UPDATE OF watching ON {nodes} FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()")
	p.watch.setWatchDown(true) // Set by hand: that its watch is down, which would report it again when it is back.
	for range notifications {
		exec(t, b, "SELECT pg_notify($1, gen_random_uuid()::text)", b.names.ElectionsChannel())
		p.wait(time.Second)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if n := strings.Count(log.text.String(), "writing whether this node watches failed"); n < 1 || n > 3 {
		t.Errorf("the statement was sent %d times beside %d notifications, want once a second", n, notifications)
	}
}
