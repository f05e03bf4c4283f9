package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/dashboard"
)

// row is an expression for what the page's first list shows of something.
func row(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".list .row")].find((row) => row.innerText.includes(%q))?.innerText`, name)
}

const isLive = `document.getElementById("connection").innerText.includes("Live")`

// wired returns a backend whose connections go through a network whose faults the
// test controls.
func (w *world) wired() (*faultwire.Proxy, *postgres.Backend) {
	w.Helper()
	wire, err := faultwire.Start(fmt.Sprintf("%s:%d", w.Server.Host, w.Server.Port))
	if err != nil {
		w.Fatal(err)
	}
	dsn, err := wire.DSN(w.Server.DSN())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := wire.Close(); err != nil {
			w.Error(err)
		}
	})
	backend, err := postgres.New(dsn, postgres.Config{Schema: w.schema})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(backend.Close)
	return wire, backend
}

// TestNewLeaderIsShownWithinOneSecond: within a second of the leader's death the open page shows the
// new one, without being loaded again. On a busy machine it is within half of the time after which the
// dashboard reads everything again.
func TestNewLeaderIsShownWithinOneSecond(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	wire, backend := w.wired()
	killed := w.node(backend, "api-1", tenure.Config{})
	w.campaign(killed, "scheduler")
	w.leads(killed, "scheduler")
	w.campaign(w.node(w.backend, "api-2", tenure.Config{}), "scheduler")
	p := w.open("")
	p.await("api-1 leads", row("scheduler")+`?.includes("api-1")`)
	p.await("api-2 is there", `document.body.innerText.includes("api-2")`)
	p.await("it is live", isLive)
	value[bool](p, `window.notLoadedAgain = true`)
	began := time.Now()
	if err := wire.Close(); err != nil { // the server sees what the end of a process looks like
		t.Fatal(err)
	}
	p.await("api-2 leads", row("scheduler")+`?.includes("api-2")`)
	took := time.Since(began)
	t.Logf("the page shows the new leader %v after the death of the old one", took)
	limit := 2500 * time.Millisecond
	if quiet() {
		limit = time.Second
	}
	if took > limit {
		t.Errorf("it took %v, want at most %v", took, limit)
	}
	if !value[bool](p, `window.notLoadedAgain === true`) {
		t.Error("the page was loaded again")
	}
	p.visit("#/role/scheduler")
	p.shows("crashed")
}

// TestPartitionedNodeIsSilentThenDead: a node that the database does not hear of shows as silent while
// it may still trust itself; when its lease is over it shows as dead, and another
// leads.
func TestPartitionedNodeIsSilentThenDead(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	wire, backend := w.wired()
	lease := tenure.Config{Lease: 15 * time.Second}
	cut := w.node(backend, "api-1", lease)
	w.campaign(cut, "scheduler")
	w.leads(cut, "scheduler")
	w.campaign(w.node(w.backend, "api-2", lease), "scheduler")
	p := w.open("")
	p.await("api-1 leads", row("scheduler")+`?.includes("api-1")`)
	p.await("it is live", isLive)
	wire.Stall()
	p.await("the role's leader is silent", row("scheduler")+`?.includes("silent")`)
	p.shows("api-1\u2069 is silent: 1 role is still led, until the lease ends.")
	p.await("api-2 leads", row("scheduler")+`?.includes("api-2")`)
	p.visit("#/events")
	p.shows("Silence: \u2068api-1\u2069 fell silent at")
	p.shows("without a sign of life")
	value[bool](p, `(() => {
		const kinds = document.querySelector("main select");
		kinds.value = "";
		return kinds.dispatchEvent(new Event("change"));
	})()`)
	p.shows("api-1 was marked dead")
	p.shows("fell silent: lease expired")
}

// TestPageCatchesUpAfterConnectionLoss: while the dashboard cannot be reached the page says so, and
// when it can be again nothing is missing.
func TestPageCatchesUpAfterConnectionLoss(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	p := w.open("#/events")
	p.shows("api-1 leads scheduler in term …")
	p.await("it is live", isLive)

	w.down.Store(true)
	w.web.CloseClientConnections()
	p.shows("Connecting again")
	for i := range 5 {
		w.campaign(w.node(w.backend, fmt.Sprintf("late-%d", i), tenure.Config{}), fmt.Sprintf("role-%d", i))
	}
	ctx := t.Context()
	for i := range 5 {
		for {
			leaders, err := w.backend.Leaders(ctx, fmt.Sprintf("role-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			if len(leaders) == 1 {
				break
			}
		}
	}
	w.down.Store(false)
	p.await("it is live again", isLive)
	for i := range 5 {
		p.shows(fmt.Sprintf("late-%d joined", i))
		p.shows(fmt.Sprintf("late-%d leads role-%d in term …", i, i))
	}
	p.shows("api-1 leads scheduler in term …")
	p.forgive("503")
	p.forgive("ERR_")
}
