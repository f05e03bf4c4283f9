package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/sidecar"
	"github.com/exactly-one/tenure/internal/program/version"
	"github.com/exactly-one/tenure/metrics"
)

// ListenFlags are the flags of a node's HTTP server.
type ListenFlags struct {
	Address string
	Token   string
	cert    string
	key     string
	Viewers string         // the file with the token of viewers; empty if there is none
	HSTS    *time.Duration // how long browsers may use only TLS; nil for the default with TLS, and nothing without
	Prefix  string         // of metrics
	hosts   []string
	Proxies []netip.Prefix

	Database *pgxpool.Pool // for requests about schedules and processors; nil to refuse them

	Page    http.Handler                    // handles other requests; may be nil
	Protect func(http.Handler) http.Handler // wraps handlers of the cluster's state; may be nil
}

// Register adds the flags.
func (f *ListenFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Address, "listen", "", "serve health, leadership, events and metrics over HTTP on this `address`, HOST:PORT; :PORT is loopback only; default off")
	flags.StringArrayVar(&f.hosts, "host", nil, "host `name` that requests to --listen may use, such as tenure.example.com or *.example.com; * for any; repeatable; default addresses and private names")
	flags.StringVar(&f.Token, "token-file", "", "`file` with the token that clients of --listen need to hold a guard or to change something; default: no client may")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the TLS certificate of --listen, in PEM; default: no TLS")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the key of --tls-cert, in PEM")
	flags.StringVar(&f.Prefix, "metrics-prefix", "tenure", "prefix of the metrics that --listen serves")
}

// defaultHSTS is how long browsers may use only TLS for a host after an answer over TLS.
const defaultHSTS = 30 * 24 * time.Hour

// hsts returns the value of the header Strict-Transport-Security, or "".
func (f *ListenFlags) hsts() string {
	age := defaultHSTS
	switch {
	case f.HSTS != nil:
		age = *f.HSTS
	case f.cert == "":
		return ""
	}
	return fmt.Sprintf("max-age=%d", int64(age.Seconds()))
}

// check rejects conflicting flags.
func (f *ListenFlags) check() error {
	if (f.cert == "") != (f.key == "") {
		return console.Usage("--tls-cert and --tls-key must be used together")
	}
	if err := (metrics.Config{Prefix: f.Prefix}).Validate(); err != nil {
		return console.Usage("--metrics-prefix: %w", err)
	}
	if f.Address == "" {
		for _, given := range []struct{ name, value string }{{"--token-file", f.Token}, {"--tls-cert", f.cert}, {"--host", strings.Join(f.hosts, " ")}} {
			if given.value != "" {
				return console.Usage("%s requires --listen", given.name)
			}
		}
	}
	return nil
}

// open reads the files, binds the address and starts to serve. So it finds invalid input
// before the node takes part, and the program responds while it waits for its database.
// Without --listen it returns an HTTPServer without effect.
func (f *ListenFlags) open(ctx context.Context, logger *slog.Logger) (*HTTPServer, error) {
	if err := f.check(); err != nil || f.Address == "" {
		return nil, err
	}
	figures := newNodeMetrics(f.Prefix)
	s := &HTTPServer{Metrics: figures, ended: make(chan struct{})}
	config := sidecar.Config{Version: version.Read().Version, Logger: logger, Metrics: figures.handler(), Page: f.Page, Protect: f.Protect, Database: f.Database, Hosts: f.hosts, Proxies: f.Proxies, HSTS: f.hsts()}
	var err error
	if f.Token != "" {
		if s.Token, err = sidecar.OpenToken(f.Token, logger); err != nil {
			return nil, err
		}
		config.Token = s.Token
	}
	if f.Viewers != "" {
		if s.ViewerToken, err = sidecar.OpenToken(f.Viewers, logger); err != nil {
			return nil, err
		}
		config.ViewerToken = s.ViewerToken
	}
	if f.cert != "" {
		if s.certificate, err = sidecar.OpenCertificate(f.cert, f.key, logger); err != nil {
			return nil, err
		}
	}
	if s.listener, err = sidecar.Listen(ctx, f.Address); err != nil {
		return nil, err
	}
	if bound := s.listener.Addr().String(); s.Token != nil && s.certificate == nil && !sidecar.IsLoopback(bound) {
		logger.Warn("the token is readable on the network: other machines reach --listen, without --tls-cert", "address", bound)
	}
	s.handler = sidecar.New(config)
	// A signal first ends the node; clients receive its last events.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go func() { // exits when serving ends; s.ended shows it
		defer close(s.ended)
		if err := sidecar.Serve(serving, s.listener, s.handler, s.certificate); err != nil {
			logger.Error("HTTP serving has ended", "error", err)
		}
	}()
	logger.Info("serving HTTP", "address", s.listener.Addr().String(), "tls", s.certificate != nil, "writes", s.Token != nil)
	return s, nil
}

// HTTPServer serves the state of a node. The methods of a nil HTTPServer do
// nothing, except URL.
type HTTPServer struct {
	handler     *sidecar.Handler
	Metrics     *NodeMetrics
	listener    net.Listener
	Token       *sidecar.Token
	ViewerToken *sidecar.Token // nil if there is none
	certificate *sidecar.Certificate
	stop        context.CancelFunc
	ended       chan struct{}
}

// URL returns the server's URL.
func (s *HTTPServer) URL() string {
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String() + "/"
}

// port returns the port of the server.
func (s *HTTPServer) port() int {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return address.Port
}

// attach connects the server to its node, once, with the cluster's name.
func (s *HTTPServer) attach(p *Participant, cluster string) {
	if s == nil {
		return
	}
	s.Metrics.attach(p)
	switch {
	case p.member != nil:
		s.handler.AttachMember(p.member, cluster)
	default:
		s.handler.Attach(p.Node)
	}
}

// Publish sends an event to the clients.
func (s *HTTPServer) Publish(event EventRecord) {
	if s != nil {
		s.handler.Publish(event.eventFields)
	}
}

// close ends serving and waits for its end. Errors were logged.
func (s *HTTPServer) close() {
	if s != nil {
		s.stop()
		<-s.ended
	}
}
