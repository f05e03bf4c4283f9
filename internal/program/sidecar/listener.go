package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/exactly-one/tenure"
)

// maxConnections bounds the open connections: no client can use up the descriptors the
// node needs to reconnect to its database. It leaves room for other requests beside the
// streams, also a page's.
const maxConnections = maxStreams + 1024

// socketBuffer is the size of the kernel's buffers of each connection. The default would
// let a client that does not read keep megabytes.
const socketBuffer = 64 << 10

// Listen binds an address as [Bind] does, and bounds the open connections.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := Bind(ctx, address)
	if err != nil {
		return nil, err
	}
	return limit(listener, mostConnections(descriptors())), nil
}

// mostConnections is how many connections a process with so many descriptors accepts.
func mostConnections(descriptors int) int { return min(maxConnections, descriptors/2) }

// Bind binds an address, as [ParseAddress] reads it. The error is one line with the
// remedy, and matches [tenure.ErrInvalidConfig]. The context bounds the resolution of a
// host name.
func Bind(ctx context.Context, address string) (net.Listener, error) {
	bind, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", bind)
	if err == nil {
		return listener, nil
	}
	reason := err.Error()
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		reason = "the port is in use by another program"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		reason = "this machine does not have that address"
	case errors.Is(err, os.ErrPermission):
		reason = "this user may not use that port; choose one above 1023"
	case errors.As(err, &dns):
		reason = "the host name cannot be resolved"
	}
	return nil, fmt.Errorf("%w: cannot listen on %s: %s", tenure.ErrInvalidConfig, bind, reason)
}
