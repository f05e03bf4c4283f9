package leaderhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/leaderwatch"
)

// Config configures a [Router] or a [Proxy]. The zero value is ready to use.
type Config struct {
	// Wait is how long a request is kept while the role has no leader, or the leader
	// accepts no connection. Default: 10 s.
	Wait time.Duration
	// MaxWaiting is how many requests may wait at a time; others get 503. The body
	// of a request stays unread while it waits. Default: 1024.
	MaxWaiting int
	// Address returns where a leader serves HTTP, as "host:port", or "" if unknown.
	// Default: the leader's Address, or else its Host, and its HTTPPort.
	Address func(tenure.Leader) string
	// TLS, if set, makes the connections to the leader use HTTPS.
	TLS *tls.Config
	// Logger receives log records. Default: slog.Default().
	Logger *slog.Logger
}

// Proxy forwards HTTP requests to the leader of a role, for programs without a campaign
// for it. It is safe for concurrent use.
type Proxy struct {
	role    string
	self    uuid.UUID // nothing is forwarded to this node
	name    string    // in ForwardedHeader
	config  Config
	watch   *leaderwatch.Watch
	cancel  context.CancelFunc
	reverse *httputil.ReverseProxy
	waiting atomic.Int64
}

// NewProxy returns a proxy to the leader of role. It follows the leader in the
// database until ctx ends or Close is called.
func NewProxy(ctx context.Context, backend tenure.Backend, role tenure.Role, config Config) (*Proxy, error) {
	if err := role.Validate(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	p := &Proxy{role: role.Name(), name: cmp.Or(host, "proxy"), config: config}
	if err := p.start(ctx, leaderwatch.OfBackend(backend, role.Name())); err != nil {
		return nil, err
	}
	return p, nil
}

// start fills in defaults and begins to follow the leader.
func (p *Proxy) start(ctx context.Context, source leaderwatch.Source) error {
	c := &p.config
	c.Wait, c.MaxWaiting = cmp.Or(c.Wait, 10*time.Second), cmp.Or(c.MaxWaiting, 1024)
	if c.Wait < 0 || c.MaxWaiting < 0 {
		return fmt.Errorf("%w: the wait is %v, for at most %d requests; both must be more than zero", tenure.ErrInvalidConfig, c.Wait, c.MaxWaiting)
	}
	if c.Address == nil {
		c.Address = httpAddress
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	source.Log = c.Logger
	ctx, p.cancel = context.WithCancel(ctx)
	p.reverse = newReverse(p)
	p.watch = leaderwatch.Start(ctx, source)
	return nil
}

// Close stops following the leader. Requests waiting for a leader get 503, and answers in
// progress are cut.
func (p *Proxy) Close() {
	p.cancel()
	<-p.watch.Done()
}

// httpAddress returns where a leader serves HTTP, as far as it publishes it.
func httpAddress(leader tenure.Leader) string {
	host := cmp.Or(leader.Address, leader.Host)
	if host == "" || leader.HTTPPort == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(leader.HTTPPort))
}

// leader returns the leader known to the watch, if there is one.
func (p *Proxy) leader() *tenure.Leader {
	leadership, _ := p.watch.Current()
	if leadership == nil {
		return nil
	}
	leader := p.watch.Leader(leadership)
	return &leader
}

// ServeHTTP forwards a request to the leader; see [Router.ForwardToLeader].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !p.refuseForwarded(w, req) {
		p.forward(w, req, func(*http.Request) bool { return false })
	}
}

// refuseForwarded refuses a request forwarded by another node, and reports whether it did.
func (p *Proxy) refuseForwarded(w http.ResponseWriter, req *http.Request) bool {
	hops := req.Header.Values(ForwardedHeader)
	if len(hops) == 0 {
		return false
	}
	p.refuse(w, http.StatusLoopDetected, codeForwarded,
		fmt.Sprintf("the request was already forwarded, by %s, and this node does not lead %s", strings.Join(hops, ", "), p.role))
	return true
}

// forward sends a request to the leader as soon as there is one. Before each attempt but
// the first it tries serve, and ends if serve has served the request.
func (p *Proxy) forward(w http.ResponseWriter, req *http.Request, serve func(*http.Request) bool) {
	ctx, cancel := context.WithTimeout(req.Context(), p.config.Wait)
	defer cancel()
	var body *keptBody
	if req.Body != nil && req.Body != http.NoBody {
		body = &keptBody{ReadCloser: req.Body, client: http.NewResponseController(w)}
	}
	waits := &wait{proxy: p}
	defer waits.end()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		leadership, address, reason := p.destination()
		if reason == nil {
			if reason = p.attempt(w, req, body, waits, leadership, address); reason == nil {
				return
			}
			if body != nil && body.lost.Load() {
				p.refuse(w, http.StatusBadGateway, codeBroken, "the connection to the leader broke while the request was sent")
				return
			}
		}
		if !waits.begin() {
			p.refuse(w, http.StatusServiceUnavailable, codeTooMany, "too many requests wait for the leader of "+p.role)
			return
		}
		if err := p.pause(ctx, leadership, pause); err != nil {
			if req.Context().Err() == nil {
				p.refuse(w, http.StatusServiceUnavailable, codeNoLeader, fmt.Sprintf("the leader of %s could not be reached: %v", p.role, reason))
			}
			return
		}
		if serve(body.whole(req)) {
			return
		}
	}
}

// Why a request cannot be sent.
var (
	errNoAddress = errors.New("it publishes no address and port for HTTP")
	errSelf      = errors.New("this node was the last leader")
	errClosed    = errors.New("this node stops")
)

// destination returns the present leadership and where to send requests, or an error with
// the reason if unknown.
func (p *Proxy) destination() (*leaderwatch.Leadership, string, error) {
	leadership, _ := p.watch.Current()
	if leadership == nil {
		return nil, "", tenure.ErrNoLeader
	}
	leader := p.watch.Leader(leadership)
	if leader.NodeID == p.self {
		return leadership, "", errSelf
	}
	address := p.config.Address(leader)
	if address == "" {
		return leadership, "", errNoAddress
	}
	return leadership, address, nil
}

// The bounds of the time between two attempts to reach a leader.
const (
	minPause = 10 * time.Millisecond
	maxPause = 320 * time.Millisecond
)

// pause waits before the next attempt: for d, or until another leader is known. It
// returns an error when ctx or the watch has ended.
func (p *Proxy) pause(ctx context.Context, failed *leaderwatch.Leadership, d time.Duration) error {
	if failed == nil {
		limited, cancel := context.WithTimeout(ctx, maxPause)
		defer cancel()
		_, _ = p.watch.Next(limited) // its error is one of those below, or nothing to report
	} else {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-failed.Context().Done():
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	select {
	case <-p.watch.Done():
		return errClosed
	default:
		return context.Cause(ctx)
	}
}
