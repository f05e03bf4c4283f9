package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/sidecar"
)

// listenFlags are the flags of the HTTP server beside a node.
type listenFlags struct {
	address string
	token   string
	cert    string
	key     string
}

func (f *listenFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "listen", "", "serve health, leadership and events over HTTP on HOST:PORT; :PORT is loopback only; default: do not serve")
	flags.StringVar(&f.token, "token-file", "", "file with the token that callers of --listen need to ask for a step-down; default: nobody may")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the TLS certificate of --listen, in PEM; default: no TLS")
	flags.StringVar(&f.key, "tls-key", "", "file with the key of --tls-cert, in PEM")
}

// check refuses flags that do not fit together.
func (f *listenFlags) check() error {
	if (f.cert == "") != (f.key == "") {
		return usage("--tls-cert and --tls-key belong together: give both")
	}
	if f.address == "" {
		for _, given := range []struct{ name, value string }{{"--token-file", f.token}, {"--tls-cert", f.cert}} {
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
	s := &httpServer{ended: make(chan error, 1)}
	config := sidecar.Config{Version: programVersion().Version, Logger: logger}
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
		err := sidecar.Serve(serving, s.listener, s.handler, s.certificate)
		if err != nil {
			logger.Error("HTTP is not served any more", "error", err)
		}
		s.ended <- err
	}()
	logger.Info("serving HTTP", "address", s.listener.Addr().String(), "tls", s.certificate != nil, "writes", s.token != nil)
	return s, nil
}

// httpServer serves what a node knows. The methods of a nil one do nothing.
type httpServer struct {
	handler     *sidecar.Handler
	listener    net.Listener
	token       *sidecar.Token
	certificate *sidecar.Certificate
	stop        context.CancelFunc
	ended       chan error
}

// attach gives the server its node, once.
func (s *httpServer) attach(node *tenure.Node) {
	if s != nil {
		s.handler.Attach(node)
	}
}

// tell tells the clients of an event.
func (s *httpServer) tell(event eventRecord) {
	if s != nil {
		s.handler.Publish(event.eventFields)
	}
}

// reload reads the token and the certificate now, as after SIGHUP. What cannot be
// used is told: a certificate stays as it was, a token lets nobody in.
func (s *httpServer) reload() error {
	if s == nil {
		return nil
	}
	var faults []error
	if s.token != nil {
		faults = append(faults, s.token.Reload())
	}
	if s.certificate != nil {
		faults = append(faults, s.certificate.Reload())
	}
	return errors.Join(faults...)
}

// close ends serving and waits for its end.
func (s *httpServer) close() error {
	if s == nil {
		return nil
	}
	s.stop()
	return <-s.ended
}
