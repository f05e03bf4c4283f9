package leaderhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/internal/leaderwatch"
)

// attempt is one attempt to send a request to a leader.
type attempt struct {
	address string
	waits   *wait           // ends when the request is sent
	over    context.Context // ends with the term
	body    *keptBody       // nil without a body
	sent    atomic.Bool     // a part of the request may have been sent
	unsent  error           // why nothing was sent

	answered atomic.Bool // the leader's answer has begun
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

// attempt forwards a request. It returns an error if nothing of the request was
// sent; otherwise the client has its answer.
func (p *Proxy) attempt(w http.ResponseWriter, req *http.Request, body *keptBody, waits *wait, leadership *leaderwatch.Leadership, address string) error {
	a := &attempt{address: address, waits: waits, over: leadership.Context(), body: body}
	ctx, cancel := context.WithCancelCause(context.WithValue(req.Context(), attemptKey{}, a))
	defer cancel(nil)
	// When a leader steps down, it answers before its term ends; the answer may still be
	// on its way.
	var cut atomic.Pointer[time.Timer]
	stop := context.AfterFunc(leadership.Context(), func() {
		cut.Store(time.AfterFunc(cutDelay, func() { cancel(leaderwatch.ErrTermOver) }))
	})
	defer func() {
		stop()
		if timer := cut.Load(); timer != nil {
			timer.Stop()
		}
	}()
	req = req.WithContext(ctx)
	if body != nil {
		req.Body = body.begin(&a.sent)
	}
	p.reverse.ServeHTTP(withoutContinue{w}, req)
	return a.unsent
}

// withoutContinue does not pass on 100 (Continue) of the leader. The transport waits for it
// before it reads the body, and the server sends 100 to the client at the first read: once.
type withoutContinue struct{ http.ResponseWriter }

func (w withoutContinue) WriteHeader(status int) {
	if status != http.StatusContinue {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for [http.ResponseController].
func (w withoutContinue) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// dialTimeout bounds a connection attempt, because the host of a leader may be gone.
const dialTimeout = 2 * time.Second

// newReverse returns the proxy for the requests of p. Each request has a new connection:
// on a reused connection, the transport could send it again.
func newReverse(p *Proxy) *httputil.ReverseProxy {
	// Without an answer 100 (Continue), the leader gets the body after the timeout.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: dial, ExpectContinueTimeout: p.config.Wait}
	scheme := "http"
	if p.config.TLS != nil {
		scheme = "https"
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, network, address, p.config.TLS)
		}
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = scheme, attemptOf(r.In.Context()).address
			r.Out.URL.RawQuery = r.In.URL.RawQuery // unchanged, also what Go does not parse
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			r.Out.Header.Add(ForwardedHeader, url.PathEscape(p.name))
		},
		ModifyResponse: func(response *http.Response) error {
			attemptOf(response.Request.Context()).answered.Store(true)
			return nil
		},
		BufferPool:   buffers{},
		ErrorHandler: p.answerError,
		ErrorLog:     slog.NewLogLogger(p.config.Logger.Handler(), slog.LevelDebug), // cut answers
	}
}

// answerError handles an attempt without an answer.
func (p *Proxy) answerError(w http.ResponseWriter, req *http.Request, err error) {
	a := attemptOf(req.Context())
	switch {
	case errors.Is(context.Cause(req.Context()), context.Canceled) && !a.body.interrupted(): // the client has gone
	case !a.sent.Load():
		a.unsent = err
	default:
		ctx := req.Context()
		if a.body.interrupted() { // which has ended the context
			ctx = context.WithoutCancel(ctx)
		}
		a.awaitEnd(ctx)
		p.config.Logger.Warn("a forwarded request got no answer", "role", p.role, "leader", a.address, "error", err)
		p.refuse(w, http.StatusBadGateway, codeBroken, "the connection to the leader broke before it answered; it may or may not have handled the request")
	}
}

// awaitEnd waits for a moment for the end of the term. After a crash of the leader, a
// client must not lose its next request to the same leader.
func (a *attempt) awaitEnd(ctx context.Context) {
	timer := time.NewTimer(cutDelay)
	defer timer.Stop()
	select {
	case <-a.over.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, attemptOf(ctx)}, nil
}

// dialTLS counts nothing of the handshake as sent.
func dialTLS(ctx context.Context, network, address string, config *tls.Config) (net.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: config}
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, attemptOf(ctx)}, nil
}

// countedConn records whether a request was sent on it.
type countedConn struct {
	net.Conn
	attempt *attempt
}

func (c *countedConn) Write(p []byte) (int, error) {
	if _, ok := c.Conn.(*tls.Conn); ok { // after an error it does not say what was sent
		c.attempt.sent.Store(true)
	}
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.attempt.sent.Store(true)
		c.attempt.waits.end()
	}
	return n, err
}

// Close closes the connection. If the answer has not begun, nothing more of the request
// is sent, and the client gets an answer although it may not have sent all of it.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if a := c.attempt; a.body != nil && a.sent.Load() && !a.answered.Load() {
		a.body.interrupt()
	}
	return err
}

// buffers keeps the buffers for copying answers.
type buffers struct{}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (buffers) Get() []byte  { return bufferPool.Get().(*[32 << 10]byte)[:] }
func (buffers) Put(b []byte) { bufferPool.Put((*[32 << 10]byte)(b)) }
