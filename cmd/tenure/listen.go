package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/cmd/tenure/internal/sidecar"
	"github.com/exactly-one/tenure/metrics"
)

// listenFlags are the flags of the HTTP server beside a node.
type listenFlags struct {
	address string
	token   string
	cert    string
	key     string
	prefix  string // of metrics
	hosts   []string
	proxies []netip.Prefix

	page    http.Handler                    // answers what the server beside a node does not; may be nil
	protect func(http.Handler) http.Handler // around what tells of the cluster; may be nil
}

func (f *listenFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "listen", "", "serve health, leadership, events and metrics over HTTP on HOST:PORT; :PORT is loopback only; default: do not serve")
	flags.StringArrayVar(&f.hosts, "host", nil, "name by which clients of --listen may ask, as tenure.example.com or *.example.com; * for any; may be repeated; default addresses and private names")
	flags.StringVar(&f.token, "token-file", "", "file with the token that callers of --listen need to ask for a step-down; default: nobody may")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the TLS certificate of --listen, in PEM; default: no TLS")
	flags.StringVar(&f.key, "tls-key", "", "file with the key of --tls-cert, in PEM")
	flags.StringVar(&f.prefix, "metrics-prefix", "tenure", "begins the names of the metrics that --listen serves")
}

// check refuses flags that do not fit together.
func (f *listenFlags) check() error {
	if (f.cert == "") != (f.key == "") {
		return usage("--tls-cert and --tls-key belong together: give both")
	}
	if err := (metrics.Config{Prefix: f.prefix}).Validate(); err != nil {
		return usage("--metrics-prefix: %w", err)
	}
	if f.address == "" {
		for _, given := range []struct{ name, value string }{{"--token-file", f.token}, {"--tls-cert", f.cert}, {"--host", strings.Join(f.hosts, " ")}} {
			if given.value != "" {
				return usage("%s is for --listen, which is not given", given.name)
			}
		}
	}
	return nil
}

// open reads the files, binds the address and begins to serve, so that bad input
// is found before the node takes part, and so that the program is seen to live
// while it waits for its database. Without --listen it returns a httpServer that
// does nothing.
func (f *listenFlags) open(ctx context.Context, logger *slog.Logger) (*httpServer, error) {
	if err := f.check(); err != nil || f.address == "" {
		return nil, err
	}
	figures := newNodeMetrics(f.prefix)
	s := &httpServer{metrics: figures, ended: make(chan struct{})}
	config := sidecar.Config{Version: programVersion().Version, Logger: logger, Metrics: figures.handler(), Page: f.page, Protect: f.protect, Hosts: f.hosts, Proxies: f.proxies}
	var err error
	if f.token != "" {
		if s.token, err = sidecar.OpenToken(f.token, logger); err != nil {
			return nil, err
		}
		config.Token = s.token
	}
	if f.cert != "" {
		if s.certificate, err = sidecar.OpenCertificate(f.cert, f.key, logger); err != nil {
			return nil, err
		}
	}
	if s.listener, err = sidecar.Listen(ctx, f.address); err != nil {
		return nil, err
	}
	if bound := s.listener.Addr().String(); s.token != nil && s.certificate == nil && !sidecar.IsLoopback(bound) {
		logger.Warn("the token is readable on the network: other machines reach --listen, without --tls-cert", "address", bound)
	}
	s.handler = sidecar.New(config)
	// A signal ends the node first; clients see its last events.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go func() {
		defer close(s.ended)
		if err := sidecar.Serve(serving, s.listener, s.handler, s.certificate); err != nil {
			logger.Error("HTTP is not served any more", "error", err)
		}
	}()
	logger.Info("serving HTTP", "address", s.listener.Addr().String(), "tls", s.certificate != nil, "writes", s.token != nil)
	return s, nil
}

// httpServer serves what a node knows. The methods of a nil one do nothing, but for url.
type httpServer struct {
	handler     *sidecar.Handler
	metrics     *nodeMetrics
	listener    net.Listener
	token       *sidecar.Token
	certificate *sidecar.Certificate
	stop        context.CancelFunc
	ended       chan struct{}
}

// url is where the server answers.
func (s *httpServer) url() string {
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String() + "/"
}

// attach gives the server its node, once, and what people call its cluster.
func (s *httpServer) attach(p *participant, cluster string) {
	if s == nil {
		return
	}
	s.metrics.attach(p)
	switch {
	case p.member != nil:
		s.handler.AttachMember(p.member, cluster)
	default:
		s.handler.Attach(p.node)
	}
}

// tell tells the clients of an event.
func (s *httpServer) tell(event eventRecord) {
	if s != nil {
		s.handler.Publish(event.eventFields)
	}
}

// close ends serving and waits for its end. What went wrong was logged.
func (s *httpServer) close() {
	if s != nil {
		s.stop()
		<-s.ended
	}
}
