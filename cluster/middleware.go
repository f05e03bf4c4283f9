package cluster

import "net/http"

// retryAfter is what a draining node tells clients, in seconds: the least, since
// another node takes the request at once.
const retryAfter = "1"

// Handler returns a handler that counts every request as work in flight until
// next has returned, however it does: a handler that hijacks or streams counts
// for as long as it runs. While the node drains, requests are answered with 503
// (Service Unavailable) and the connection is closed, so that clients and load
// balancers turn to another node. next gets the [http.ResponseWriter] of the
// server, with everything that [http.ResponseController] can do.
//
// A handler that returns before its work has ended, for instance one that
// hijacked the connection, has to keep a guard of its own; see [InFlight.Enter].
func (f *InFlight) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard, ok := f.Enter()
		if !ok {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "this node is draining; try again on another", http.StatusServiceUnavailable)
			return
		}
		defer guard.Done()
		next.ServeHTTP(w, r)
	})
}
