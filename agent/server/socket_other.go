//go:build !linux

package server

import (
	"context"
	"net"

	"github.com/exactly-one/tenure/agent/internal/wire"
)

// socket is not used: see wire.Supported.
type socket struct{ listener *net.UnixListener }

func listen(string) (*socket, error) { return nil, wire.Supported() }

func (s *socket) close() {}

func (s *server) guardSocket(context.Context, *socket) { s.accept(nil) }
