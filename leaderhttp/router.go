package leaderhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/leaderwatch"
)

// ForwardedHeader names the nodes that have forwarded a request, one for each hop.
// A node that does not lead refuses a request that has it with 508 (Loop Detected),
// after it has waited for a term that may just have begun, for a tenth of
// [Config].Wait.
const ForwardedHeader = "Tenure-Forwarded-By"

// Router serves the HTTP requests of one role's candidates: on the leader, or by
// forwarding them to the leader. It is safe for concurrent use.
type Router struct {
	election *tenure.Election
	proxy    *Proxy
}

// New returns a router for the role of election, which may be started before or
// later. The router follows the leader in the database until ctx ends or Close is
// called.
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

// Close stops following the leader. Requests that wait for a leader get 503, and
// forwarded answers in progress are cut.
func (r *Router) Close() { r.proxy.Close() }

// LeaderOnly returns a handler that calls next while this node leads the role, and
// otherwise answers 503 (Service Unavailable) with the leader and its address.
//
// The context of the request ends with the term. The role is not released until next
// has returned; after a request to step down, next has StopTimeout of
// [tenure.Config] for that. What next still sends or reads is cut a quarter of a
// second after the end of the term.
func (r *Router) LeaderOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.serve(w, req, next) {
			r.proxy.refuse(w, http.StatusServiceUnavailable, codeNotLeader, "this node does not lead "+r.proxy.role)
		}
	})
}

// ForwardToLeader returns a handler that calls next while this node leads the role,
// as [Router.LeaderOnly] does, and otherwise forwards the request to the leader. The
// handler of the leader must be one of the same kind.
//
// While the role has no leader, or the leader accepts no connection, the request
// waits for at most [Config].Wait and then gets 503. A request of which a part was
// sent is never sent again: if the connection breaks before the answer, the client
// gets 502 and cannot know whether the leader has handled it. An answer is cut when
// the term ends under which it began.
func (r *Router) ForwardToLeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.serve(w, req, next) || r.serveForwarded(w, req, next) || r.proxy.refuseForwarded(w, req) {
			return
		}
		r.proxy.forward(w, req, func(whole *http.Request) bool { return r.serve(w, whole, next) })
	})
}

// serveForwarded serves a forwarded request as soon as this node leads, and reports
// whether it did. The node that forwarded the request can read in the database that a
// term has begun before this node has the answer to the statement that began it.
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

// Term returns the term under which [Router.LeaderOnly] or [Router.ForwardToLeader]
// serves the request of a context, or nil. Its number is the fencing token for what
// the request writes.
func Term(ctx context.Context) *tenure.Term {
	term, _ := ctx.Value(termKey{}).(*tenure.Term)
	return term
}
