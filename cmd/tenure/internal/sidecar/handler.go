package sidecar

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
	"github.com/exactly-one/tenure/cmd/tenure/internal/roster"
	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/httpguard"
)

// Config configures a Handler. The zero value is ready to use.
type Config struct {
	// Version is the program's version, sent to clients.
	Version string
	// Token is the secret that callers need to write. Without one, writing is disabled.
	Token *Token
	// Metrics, if set, answers GET /metrics.
	Metrics http.Handler
	// Database, if set, is a pool on the node's database for requests about schedules
	// and processors. Without it they are refused.
	Database *pgxpool.Pool
	// Hosts are host names that the server answers in addition to its own;
	// see [httpguard.Hosts]. Health checks answer any name.
	Hosts []string
	// Proxies are trusted to say where a request comes from.
	Proxies httpguard.Proxies
	// Page, if set, answers every path that the handler does not know. It sets its own
	// headers in place of the handler's.
	Page http.Handler
	// Protect, if set, wraps everything about the cluster: all paths except those of
	// Page and of the node's health.
	Protect func(http.Handler) http.Handler
	// Logger receives what happens. Default slog.Default().
	Logger *slog.Logger
}

// Handler answers what is asked about a node. Until Attach it lives and is not
// ready. It is safe for concurrent use.
type Handler struct {
	config Config
	paths  map[string]methods
	named  []namedPath

	feed    *feed.Feed // of elections and leaders
	nodes   *feed.Feed // of nodes
	streams *httpguard.Slots
	stall   time.Duration // for a client to take something of a stream
	recheck time.Duration

	hosts    *httpguard.Hosts
	attempts *httpguard.Attempts // to guess a token, here and on the page
	member   atomic.Pointer[member]

	life    context.Context
	end     context.CancelFunc
	group   sync.WaitGroup // the observation and lookups
	serving sync.RWMutex   // each request holds it shared; Close acquires it and never releases it
	close   func()
}

// member is the node with what is kept of its cluster.
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
		config: config, feed: newFeed(), nodes: newFeed(), stall: stallTimeout, recheck: recheck,
		streams: httpguard.NewSlots(maxStreams, eachStreams), hosts: httpguard.NewHosts(config.Hosts...), attempts: httpguard.NewAttempts(),
	}
	h.life, h.end = context.WithCancel(context.Background())
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
// of all roles. For that it reads the database once per check interval of the node, and
// after notifications, however many clients there are.
func (h *Handler) Attach(node *tenure.Node) { h.attach(h.newMember(node, nil, "")) }

// AttachMember is Attach for the node of a member of a cluster with a display name. The
// handler also follows the other nodes, which adds no statement to those that the member
// sends anyway.
func (h *Handler) AttachMember(joined *cluster.Member, name string) {
	h.attach(h.newMember(joined.Node(), joined, name))
	h.group.Go(func() { h.followNodes(joined) })
}

func (h *Handler) attach(m *member) {
	if !h.member.CompareAndSwap(nil, m) {
		panic("sidecar: Attach is called twice")
	}
	h.group.Go(func() {
		for change := range m.node.Observe(h.life) {
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

// maxErrorText is how many bytes of an error's text an event contains, so that the feed
// keeps many events.
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

// Close ends the streams of events, refuses further requests, and waits for those
// in progress and for everything that the handler started. It is idempotent.
func (h *Handler) Close() { h.close() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
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

// routes lists every path. It does not use an http.ServeMux, whose patterns do not
// match a role named "/", however it is encoded, and which answers some paths with
// redirects.
func (h *Handler) routes() {
	get := func(f http.HandlerFunc) methods { return methods{http.MethodGet: f} }
	h.paths = map[string]methods{
		"/healthz":         get(h.healthy),
		"/readyz":          get(h.ready),
		"/leader":          get(h.leading),
		"/v1/elections":    get(h.elections),
		"/v1/leaders":      get(h.leaders),
		"/v1/cluster":      get(h.cluster),
		"/v1/nodes":        get(h.allNodes),
		"/v1/nodes/watch":  get(h.streaming(h.nodes)),
		"/v1/events":       get(h.streaming(h.feed)),
		"/v1/openapi.json": get(describe),
	}
	if h.config.Metrics != nil {
		h.paths["/metrics"] = get(h.config.Metrics.ServeHTTP)
	}
	post := func(f http.HandlerFunc) methods { return methods{http.MethodPost: h.protected(f)} }
	h.named = []namedPath{
		{"/v1/elections/", "role", "/step-down", post(h.stepDown)},
		{"/v1/leaders/", "role", "", get(h.leader)},
		{"/v1/nodes/", "node", "/drain", post(h.drain)},
		{"/v1/nodes/", "node", "/undrain", post(h.undrain)},
		{"/v1/nodes/", "node", "", get(h.oneNode)},
	}
	paths, named := h.scheduleRoutes()
	maps.Copy(h.paths, paths)
	h.named = append(h.named, named...)
}

// route finds who answers a request.
func (h *Handler) route(r *http.Request) http.Handler {
	path := r.URL.EscapedPath()
	if found, ok := h.paths[path]; ok {
		if slices.Contains(healthPaths, path) {
			return found
		}
		return h.guarded(found)
	}
	for _, p := range h.named {
		if name, ok := p.match(path); ok {
			r.SetPathValue(p.value, name)
			return h.guarded(p.methods)
		}
	}
	if h.config.Page != nil {
		return h.config.Page
	}
	return http.HandlerFunc(nothing)
}

// healthPaths are for service managers and load balancers, which do not authenticate.
var healthPaths = []string{"/healthz", "/readyz", "/leader"}

func (h *Handler) guarded(next http.Handler) http.Handler {
	if h.config.Protect == nil {
		return next
	}
	return h.config.Protect(next)
}

// may reports whether a client may still read what it once asked for.
func (h *Handler) may(r *http.Request) (may bool) {
	if h.config.Protect == nil {
		return true
	}
	allowed := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { may = true })
	h.config.Protect(allowed).ServeHTTP(&nowhere{header: http.Header{}}, r)
	return may
}

// nowhere discards an answer.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header              { return n.header }
func (n *nowhere) Write(answer []byte) (int, error) { return len(answer), nil }
func (n *nowhere) WriteHeader(int)                  {}

// nothing answers for paths that do not exist.
func nothing(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotFound, codeNotFound, "there is nothing at this path; see /v1/openapi.json")
}

// namedPath is a path with the name of a role, a node or the like in it, between a prefix
// and a suffix.
type namedPath struct {
	prefix, value, suffix string
	methods               methods
}

// match returns the name in a path, decoded.
func (p namedPath) match(path string) (name string, ok bool) {
	rest, begins := strings.CutPrefix(path, p.prefix)
	segment, ends := strings.CutSuffix(rest, p.suffix)
	name, err := url.PathUnescape(segment)
	return name, begins && ends && err == nil && segment != "" && !strings.Contains(segment, "/")
}

// methods are the handlers of a path by method. HEAD is answered as GET is; the
// server leaves the body out.
type methods map[string]http.HandlerFunc

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if handle, ok := m[method]; ok {
		handle(w, r)
		return
	}
	allowed := slices.Sorted(maps.Keys(m))
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	refuse(w, http.StatusMethodNotAllowed, codeMethod, "this path takes only "+strings.Join(allowed, " and "))
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
