package leaderhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/leaderwatch"
)

// ForwardedHeader names the nodes that have forwarded a request, one for each hop. A node
// that does not lead refuses a request with this header with 508 (Loop Detected). Before,
// it waits a tenth of [Config].Wait for a term that may just have begun.
const ForwardedHeader = "Tenure-Forwarded-By"

// Router serves the HTTP requests of one role's candidates: on the leader, or by
// forwarding them to the leader. It is safe for concurrent use.
type Router struct {
	election *tenure.Election
	proxy    *Proxy
}

// New returns a router for the role of election. The election may be started before or
// later. The router follows the leader in the database until ctx ends or Close is called.
func New(ctx context.Context, election *tenure.Election, config Config) (*Router, error) {
	node := election.Node()
	proxy := &Proxy{role: election.Role().Name(), self: node.ID(), name: node.Name(), config: config}
	changed, stop := node.Subscribe()
	if err := proxy.start(ctx, leaderwatch.Source{Read: election.Leader, Changed: changed, Stop: stop}); err != nil {
		stop()
		return nil, err
	}
	return &Router{election, proxy}, nil
}

// Close stops following the leader. Requests waiting for a leader get 503, and forwarded
// answers in progress are cut.
func (r *Router) Close() { r.proxy.Close() }

// LeaderOnly returns a handler that calls next while this node leads the role, and
// otherwise answers 503 (Service Unavailable) with the leader and its address.
//
// The context of the request ends with the term. The role is not released until next has
// returned; after a request to step down, next has StopTimeout of [tenure.Config] to
// return. If next still sends or reads a quarter of a second after the end of the term,
// its connection is cut.
func (r *Router) LeaderOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.serve(w, req, next) {
			r.proxy.refuse(w, http.StatusServiceUnavailable, codeNotLeader, "this node does not lead "+r.proxy.role)
		}
	})
}

// ForwardToLeader returns a handler that calls next while this node leads the role, as
// [Router.LeaderOnly] does, and otherwise forwards the request to the leader. The leader's
// handler must be of the same kind.
//
// While the role has no leader, or the leader accepts no connection, the request waits for
// at most [Config].Wait and then gets 503. After a part of a request was sent, it is never
// sent again: if the connection breaks before the answer, the client gets 502 and cannot
// know whether the leader has handled it. An answer is cut at the end of the term under
// which it began.
func (r *Router) ForwardToLeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.serve(w, req, next) || r.serveForwarded(w, req, next) || r.proxy.refuseForwarded(w, req) {
			return
		}
		r.proxy.forward(w, req, func(whole *http.Request) bool { return r.serve(w, whole, next) })
	})
}

// serveForwarded serves a forwarded request as soon as this node leads, and reports
// whether it did. The forwarding node can find a begun term in the database before this
// node has the answer to its own statement.
func (r *Router) serveForwarded(w http.ResponseWriter, req *http.Request, next http.Handler) bool {
	if req.Header.Get(ForwardedHeader) == "" {
		return false
	}
	waits := &wait{proxy: r.proxy}
	defer waits.end()
	if !waits.begin() {
		return false
	}
	ctx, cancel := context.WithTimeout(req.Context(), r.proxy.config.Wait/10)
	defer cancel()
	for {
		select {
		case <-time.After(minPause):
		case <-r.proxy.watch.Done():
			return false
		case <-ctx.Done():
			return false
		}
		if r.serve(w, req, next) {
			return true
		}
	}
}

// serve calls next if this node leads, and reports whether it does.
func (r *Router) serve(w http.ResponseWriter, req *http.Request, next http.Handler) bool {
	guard, err := r.election.Guard()
	if err != nil {
		return false
	}
	defer guard.Done()
	term := guard.Term()
	ctx, cancel := context.WithCancelCause(context.WithValue(req.Context(), termKey{}, term))
	defer cancel(nil)
	defer cutAfter(term.Context(), w, cancel)()
	next.ServeHTTP(w, req.WithContext(ctx))
	return true
}

type termKey struct{}

// Term returns the term under which [Router.LeaderOnly] or [Router.ForwardToLeader] serves
// the request of a context, or nil. Its number is the fencing token for the writes of the
// request.
func Term(ctx context.Context) *tenure.Term {
	term, _ := ctx.Value(termKey{}).(*tenure.Term)
	return term
}
