package sidecar

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// Config configures a Handler. The zero value is ready to use.
type Config struct {
	// Version is the program's version, sent to clients.
	Version string
	// Token is the callers' secret for writing. Without one, writing is disabled.
	Token *Token
	// ViewerToken, if set, is the secret of callers without the right to write. Their
	// writes are refused with this reason.
	ViewerToken *Token
	// Metrics, if set, answers GET /metrics.
	Metrics http.Handler
	// Database, if set, is a pool on the node's database for requests about schedules
	// and processors. Without it they are refused.
	Database *pgxpool.Pool
	// Hosts are additional host names of the server; see [httpguard.Hosts]. Health checks
	// answer any name.
	Hosts []string
	// Proxies are trusted to say where a request comes from.
	Proxies httpguard.Proxies
	// HSTS, if set, is the value of the header Strict-Transport-Security in answers to
	// requests over TLS, to this server or to one of Proxies.
	HSTS string
	// Page, if set, answers every path unknown to the handler. It sets its own headers in
	// place of the handler's.
	Page http.Handler
	// Protect, if set, wraps everything about the cluster: all paths except Page's and
	// the node's health.
	Protect func(http.Handler) http.Handler
	// Logger receives events and failures. Default slog.Default().
	Logger *slog.Logger
}

// Handler answers requests about a node. Until Attach it lives and is not ready. It is
// safe for concurrent use.
type Handler struct {
	config Config
	paths  map[string]methods
	named  []namedPath

	feed    *feed.Feed // of elections and leaders
	nodes   *feed.Feed // of nodes
	streams *httpguard.Slots
	guards  *httpguard.Slots
	stall   time.Duration // for a client to take something of a stream
	recheck time.Duration

	pauseWait time.Duration // for the batch in flight of a processor

	hosts    *httpguard.Hosts
	attempts *httpguard.Attempts // to guess a token, here and on the page
	member   atomic.Pointer[member]

	ctx     context.Context
	end     context.CancelFunc
	group   sync.WaitGroup // the observation and lookups
	serving sync.RWMutex   // each request holds it shared; Close acquires it and never releases it
	close   func()
}

// member is the node with the handler's copy of its cluster.
type member struct {
	node    *tenure.Node
	joined  *cluster.Member // nil if it is not a member of a cluster
	leaders *lookup[leadership]
	nodes   *lookup[nodeSnapshot] // nil if the database keeps no registry of nodes
	work    *work                 // nil if it is not served
}

func (h *Handler) newMember(node *tenure.Node, joined *cluster.Member, name string) *member {
	m := &member{node: node, joined: joined, work: newWork(node.Backend(), h.config.Database)}
	m.leaders = newLookup(h, "the leaders", func(ctx context.Context) (leadership, error) {
		return askLeaders(ctx, node.Backend())
	})
	if source, ok := node.Backend().(roster.Source); ok {
		m.nodes = newLookup(h, "the nodes", func(ctx context.Context) (nodeSnapshot, error) {
			return readNodes(ctx, source, name)
		})
	}
	return m
}

// New returns a handler without a node. Call Close when it is no longer
// needed; [Serve] does.
func New(config Config) *Handler {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	h := &Handler{
		config: config, feed: newFeed(), nodes: newFeed(), stall: stallTimeout, recheck: recheck, pauseWait: pauseTimeout,
		streams: httpguard.NewSlots(maxStreams, eachStreams), guards: httpguard.NewSlots(maxGuards, eachGuards), hosts: httpguard.NewHosts(config.Hosts...), attempts: httpguard.NewAttempts(),
	}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.close = sync.OnceFunc(func() {
		h.feed.Close()
		h.nodes.Close()
		h.end()
		h.serving.Lock()
		h.group.Wait()
	})
	h.routes()
	return h
}

// Attach gives the handler its node, once. From then on the handler follows the leaders
// of all roles. To do so, it reads the database once per check interval of the node, and
// after notifications, however many clients there are.
func (h *Handler) Attach(node *tenure.Node) { h.attach(h.newMember(node, nil, "")) }

// AttachMember is Attach for the node of a member of a cluster with a display name. The
// handler also follows the other nodes, without statements beyond the member's own.
func (h *Handler) AttachMember(joined *cluster.Member, name string) {
	h.attach(h.newMember(joined.Node(), joined, name))
	h.group.Go(func() { h.followNodes(joined) })
}

func (h *Handler) attach(m *member) {
	if !h.member.CompareAndSwap(nil, m) {
		panic("sidecar: Attach is called twice")
	}
	h.group.Go(func() {
		for change := range m.node.Observe(h.ctx) {
			h.publish(h.feed, kindLeader, record.NewChange(time.Now(), change))
		}
	})
}

// Publish sends an event of one of the node's elections to the clients. It does not
// block.
func (h *Handler) Publish(event record.Event) {
	event.Error = shorten(event.Error)
	h.publish(h.feed, kindElection, event)
}

func (h *Handler) publish(to *feed.Feed, kind string, event any) {
	if err := to.Publish(kind, event); err != nil {
		h.config.Logger.Error("an event cannot be published", "error", err)
	}
}

// maxErrorText is how many bytes of an error's text an event contains: the feed should
// keep many events.
const maxErrorText = 1000

func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	end := maxErrorText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + " …"
}

// Close ends the streams of events, refuses further requests, and waits for requests in
// progress and for all work of the handler. It is idempotent.
func (h *Handler) Close() { h.close() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	if h.config.HSTS != "" && (r.TLS != nil || h.config.Proxies.Sent(r) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")) {
		header.Set("Strict-Transport-Security", h.config.HSTS)
	}
	if !h.serving.TryRLock() {
		refuse(w, http.StatusServiceUnavailable, codeStopping, "the node stops")
		return
	}
	defer h.serving.RUnlock()
	if !h.knownHost(r) {
		refuse(w, http.StatusMisdirectedRequest, codeHost, "this server does not accept that host name: start it with --host NAME to allow it")
		return
	}
	r = r.WithContext(httpguard.WithAttempts(r.Context(), h.attempts))
	h.route(r).ServeHTTP(w, r)
}

// knownHost reports whether the handler may be asked by the name in a request.
// Balancers and probes bring any name, or none.
func (h *Handler) knownHost(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz":
		return true
	case "/leader":
		return r.Host == "" || h.hosts.Known(r)
	default:
		return h.hosts.Known(r)
	}
}

// present returns the node, or refuses while there is none.
func (h *Handler) present(w http.ResponseWriter) (*member, bool) {
	m := h.member.Load()
	if m == nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, codeStarting, notYet)
	}
	return m, m != nil
}

// notYet is the message while there is no node.
const notYet = "the node has no session with its database yet"
