// Package leaderhttp serves HTTP requests on the leader of a role. Every candidate
// runs the same server: the leader handles a request, and the others refuse it or
// forward it to the leader.
//
//	router, err := leaderhttp.New(ctx, election, leaderhttp.Config{})
//	mux := http.NewServeMux()
//	mux.Handle("/", router.ForwardToLeader(orders))
//	mux.HandleFunc("GET /healthz", router.Healthz)
//	mux.HandleFunc("GET /readyz", router.Readyz)
//	mux.HandleFunc("GET /leader", router.Leader)
//
// Nodes publish where they serve as Address and HTTPPort of [tenure.Description], or
// of cluster.Config.
//
// A handler takes the term of its request from [Term] and fences its writes with the term:
// a request received during a term can be handled after the term.
package leaderhttp
