package dashboard

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// errUnknown is the error for an unknown name.
var errUnknown = errors.New("there is nothing of this name")

// route is a pattern of http.ServeMux with its protected handler.
type route struct {
	pattern string
	handler http.Handler
}

// routes returns the handler of the dashboard with its protection.
func (d *Dashboard) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range d.table() {
		mux.Handle(r.pattern, r.handler)
	}
	return d.guard.everything(mux)
}

// table lists every route. The handler has no other: a test can try each of them as each
// kind of visitor.
func (d *Dashboard) table() []route {
	all := assetRoutes()
	free := func(pattern string, answer http.HandlerFunc) { all = append(all, route{pattern, answer}) }
	read := func(pattern string, answer http.HandlerFunc) {
		all = append(all, route{"GET " + pattern, d.guard.reading(d.attending(answer))})
	}
	// readKnown waits for the first read of the database: before it, no name is known.
	readKnown := func(pattern string, answer http.HandlerFunc) {
		read(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !d.snapshot.awaitFirstRead(r.Context()) {
				refuse(w, http.StatusServiceUnavailable, "the database is not responding")
				return
			}
			answer(w, r)
		})
	}
	free("POST /api/login", d.guard.login)
	free("POST /api/logout", d.guard.logout)
	free("GET /api/session", d.session)
	free("GET /login", d.guard.beginSignOn)
	free("GET /login/callback", d.guard.finishSignOn)
	read("/api/now", d.getNow)
	read("/api/roles", d.getRoles)
	readKnown("/api/role", d.getRole)
	readKnown("/api/terms", d.getTerms)
	readKnown("/api/timeline", d.getTimeline)
	read("/api/nodes", d.getNodes)
	readKnown("/api/node", d.getNode)
	read("/api/schedule", d.getSchedule)
	read("/api/run", d.getRun)
	read("/api/processor", d.getProcessor)
	read("/api/events", d.getEvents)
	read("/api/failovers", d.getFailovers)
	read("/api/incidents", d.getIncidents)
	readKnown("/api/incident", d.getIncident)
	read("/api/lanes", d.getLanes)
	readKnown("/api/graphs", d.getGraphs)
	read("/api/audit", d.getAudit)
	read("/api/stream", d.stream)
	all = append(all, route{"POST /api/actions", d.guard.acting(d.attending(d.act))})
	free("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "there is no such page") })
	return all
}

// refuse answers with an error for the page to show as text.
func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error": message})
}

// answer answers with a record as JSON. It ignores an error of writing, since the client
// is gone then. A record can contain values unknown to JSON, for example a time after the
// year 9999 from a table.
func answer(w http.ResponseWriter, status int, record any) {
	body, err := json.Marshal(record)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"a row of the database has what cannot be shown"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// maxPage is how many rows a page of a list has at most.
const maxPage = 500

// pageOf reads the requested range of a list.
func pageOf(r *http.Request) (offset, limit int) {
	return number(r, "offset", 0, 0, 1<<30), number(r, "limit", 100, 1, maxPage)
}

// number reads a number from the query. An invalid number, or one out of bounds, is
// replaced by a valid one.
func number(r *http.Request, name string, otherwise, least, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		n = otherwise
	}
	return min(max(n, least), most)
}

// cut returns a page of a list.
func cut[R any](rows []R, offset, limit int) []R {
	offset = min(offset, len(rows))
	return rows[offset:min(len(rows), offset+limit)]
}
