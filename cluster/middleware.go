package cluster

import "net/http"

// retryAfter is the Retry-After of a draining node in seconds. It is the
// minimum, since another node can take the request immediately.
const retryAfter = "1"

// Handler returns a handler that counts every request as work in flight until next
// returns, including while it streams. While the node drains, requests get 503 (Service
// Unavailable) and the connection is closed: clients and load balancers then use another
// node. next receives the server's [http.ResponseWriter], with full support of
// [http.ResponseController].
//
// If a handler returns before its work has ended, for example after hijacking the
// connection, it must hold its own guard; see [InFlight.Enter].
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
