package dashboard

import (
	"strings"
	"testing"
)

// A retired role is not reported as vacant, neither to connected viewers nor by
// a dashboard that starts later. Its history stays.
func TestRetiredRoleIsHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	_, stop := w.node("api-2", "old", "older")
	w.led("old", "api-2")
	stop()
	w.await("the roles are vacant", func() bool { return w.board.snapshot.now().Vacant == 2 })
	next, end := w.follow("")
	defer end()
	for _, role := range []string{"old", "older"} {
		if err := w.backend.Retire(t.Context(), role, "anna"); err != nil {
			t.Fatal(err)
		}
	}
	w.board.notify()
	for e := next(); e.kind != kindChange || !strings.Contains(e.data, `"more":true`); e = next() {
	}
	p := newSnapshot()
	w.await("they are gone", func() bool {
		reading, err := (&watcher{Dashboard: w.board}).read(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		p = newSnapshot()
		p.update(reading)
		return w.board.snapshot.now().Roles == 1 && p.now().Roles == 1
	})
	for _, now := range []nowRecord{w.board.snapshot.now(), p.now()} {
		if now.Vacant != 0 || now.Led != 1 || strings.Contains(now.Health.Sentence, "Nobody") {
			t.Errorf("%+v", now)
		}
		for _, n := range now.Nodes {
			if n.Name == "api-2" && n.Led != 0 {
				t.Errorf("a node that is gone leads %d roles", n.Led)
			}
		}
	}
	if roles := get[list[roleRecord]](w, "/api/roles"); roles.Total != 1 {
		t.Errorf("%+v", roles)
	}
	if terms := get[list[termRecord]](w, "/api/terms?role=old"); terms.Total != 1 {
		t.Errorf("%+v", terms)
	}
	for _, l := range get[lanesRecord](w, "/api/lanes").Lanes {
		if retired := strings.HasPrefix(l.Role, "old"); (l.Retired != nil) != retired {
			t.Errorf("lane of %s: retired at %v; want the time only if it is retired", l.Role, l.Retired)
		}
	}
	w.node("api-3", "old")
	w.led("old", "api-3")
	if now := w.board.snapshot.now(); now.Roles != 2 || now.Vacant != 0 {
		t.Errorf("led again: %+v", now)
	}
	for _, l := range get[lanesRecord](w, "/api/lanes").Lanes {
		if l.Role == "old" && l.Retired != nil {
			t.Errorf("led again: its lane is retired at %v", l.Retired)
		}
	}
}
