// Package dashboard is a web page about an installation of Tenure: the leader of each
// role, since when it leads and why it changed, the nodes, processors, schedules and
// alerts. It is an [http.Handler] for any Go service:
//
//	page, err := dashboard.New(dashboard.Config{Backend: backend, Database: pool, BasePath: "/tenure"})
//	defer page.Close()
//	mux.Handle("/tenure/", page)
//
// All its files are embedded: it needs no build step, loads nothing from other hosts, and
// works with a strict Content-Security-Policy.
//
// One goroutine reads the database, after notifications and every few seconds, however
// many visitors view the page: they are served from memory, and receive changes as
// server-sent events. The exception is the timeline of a role. Its history is read when a
// visitor first opens it, and kept.
//
// Without [Config.Authentication] all visitors may view and none may act. With it,
// actions need a user, are protected from other sites' pages, and are recorded with the
// user's name.
package dashboard
