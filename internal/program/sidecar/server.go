package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The bounds on a request. A stream of events has its own for writing.
const (
	headerTimeout   = 5 * time.Second  // for the request's header to arrive
	requestTimeout  = 10 * time.Second // for the whole request to arrive
	responseTimeout = 30 * time.Second // for the response to be made and taken
	idleTimeout     = time.Minute      // between two requests of a connection
	stopTimeout     = 5 * time.Second  // for requests in progress at the end
	maxHeaderBytes  = 16 << 10
)

// Serve serves the handler until the context ends. Then it waits a few seconds for
// requests in progress, ends the streams of events with a last message, and closes the
// listener and the handler. With a certificate it uses TLS, with HTTP/1.1 and HTTP/2. It
// returns nil, or the error that ended serving.
func Serve(ctx context.Context, listener net.Listener, handler *Handler, certificate *Certificate) error {
	log := handler.config.Logger
	server := &http.Server{
		Handler:           counted(handler),
		ConnContext:       withConn,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong

		DisableGeneralOptionsHandler: true, // it would answer without the checks of the handler
	}
	serve := server.Serve
	if certificate != nil {
		server.TLSConfig = &tls.Config{GetCertificate: certificate.get, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	var failure, result error
	served := make(chan struct{})
	go func() { // exits when the server is shut down; this function waits for it
		defer close(served)
		result = serve(listener)
	}()
	select {
	case <-served:
		failure = fmt.Errorf("serve on %s: %w", listener.Addr(), result)
	case <-ctx.Done():
	}
	handler.feed.Close()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		log.Debug("requests were cut at the end", "error", err)
		err = server.Close()
		if failure == nil && err != nil && !errors.Is(err, net.ErrClosed) {
			failure = fmt.Errorf("close the server on %s: %w", listener.Addr(), err)
		}
	}
	<-served
	handler.Close()
	return failure
}
