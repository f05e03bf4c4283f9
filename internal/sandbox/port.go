package sandbox

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Host is the loopback address that servers listen on.
const Host = "127.0.0.1"

// Ports are taken from below the range that systems give to outgoing
// connections, or such a connection could take a server's port while the server
// restarts.
const firstPort, ports = 15000, 15000

// FreePort returns a port that nobody listens on at the moment.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(ports)
		if err = TryPort(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found: %w", err)
}

// TryPort returns an error if somebody listens on a port.
func TryPort(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(Host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return listener.Close()
}
