package main

import (
	"fmt"

	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/pgserver"
)

// bench is one run.
type bench struct {
	options

	server    *pgserver.Server
	network   *netns.Network // nil if there cannot be one
	noNetwork error          // why
	children  []*child       // alive
	all       []*child
}

// dsnAcross leads from a network namespace to the server.
func (b *bench) dsnAcross() string {
	return fmt.Sprintf("postgres://postgres@%s:%d/postgres", b.network.Host(0), b.server.Port)
}
