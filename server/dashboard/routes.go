package dashboard

import "net/http"

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

// attending returns a handler that attends before it answers.
func (d *Dashboard) attending(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.audience.attend(r.Context())
		next(w, r)
	}
}
