//go:build !linux

package pgdial

import (
	"net"
	"testing"
)

// fullBacklog is a host that never answers, where no queue can be filled.
func fullBacklog(t *testing.T) string { return listener(t, func(net.Conn) {}) }
