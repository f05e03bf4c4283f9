// Package dashboard is a web page on an installation of Tenure: who leads what,
// since when and why that changed, the nodes, processors, schedules and alerts.
// It is an [http.Handler] for any Go service:
//
//	page, err := dashboard.New(dashboard.Config{Backend: backend, Database: pool, BasePath: "/tenure"})
//	defer page.Close()
//	mux.Handle("/tenure/", page)
//
// Everything that it serves is embedded: it needs no build step, asks nothing of
// other hosts, and works with a strict Content-Security-Policy.
//
// One goroutine looks at the database, when it tells of news and every few
// seconds, however many people look at the page: they are served from memory,
// and told of changes by server-sent events. The exception is the timeline of a
// role, whose history is read when somebody first looks at it, and kept.
//
// Without [Config.Authentication] everybody may look and nobody may act. With it,
// actions need a user, are protected from other sites' pages, and are recorded
// with the user's name.
package dashboard
