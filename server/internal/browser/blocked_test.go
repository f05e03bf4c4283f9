package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestBlockerOfAVacancyIsNamed: a transaction that keeps the next term from beginning is in the banner
// and on the page of the role, until it ends.
func TestBlockerOfAVacancyIsNamed(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	patient := tenure.Config{FenceTimeout: 10 * time.Minute}
	first, second := w.node(w.backend, "api-1", patient), w.node(w.backend, "api-2", patient)
	w.campaign(first, "billing")
	w.leads(first, "billing")
	w.campaign(second, "billing")
	report := pgtest.Conn(t, w.Server.DSN()+"&application_name=report")
	lock := fmt.Sprintf("BEGIN; SELECT FROM %s WHERE role = 'billing' FOR UPDATE", pgx.Identifier{w.schema, "tenure_terms"}.Sanitize())
	if _, err := report.Exec(t.Context(), lock, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	p := w.open("#/role/billing")
	p.shows("Who led when")
	w.exec(`SELECT pg_terminate_backend(pid) FROM {nodes} WHERE name = 'api-1'`)
	name := fmt.Sprintf("process %d of user ", report.PgConn().PID())
	p.await("the banner names the blocker", `document.getElementById("health").matches(".critical") && document.getElementById("health").innerText.includes("waits for") && document.getElementById("health").innerText.includes(`+quote(name)+`)`)
	p.await("the page of the role names it", `document.querySelector("main").innerText.includes("The next term waits for") && document.querySelector("main").innerText.includes("(report)")`)
	if *images != "" {
		p.settle()
		p.writeScreenshot("blocked-role")
	}
	if _, err := report.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	p.await("the blocker is gone", `!document.querySelector("main").innerText.includes("The next term waits for") && !document.getElementById("health").innerText.includes("waits for ")`)
}
