package sidecar

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure"
)

// loopback is the host of a port without one: an address reachable from other machines
// must be written explicitly.
const loopback = "127.0.0.1"

// ParseAddress reads an address like "127.0.0.1:8080" or "[::1]:8080". Without a
// host, as in ":8080", it is this machine's loopback; all interfaces are written
// "0.0.0.0:8080" or "[::]:8080". The error matches [tenure.ErrInvalidConfig].
func ParseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%w: %q is not an address: write HOST:PORT, or :PORT for this machine only",
			tenure.ErrInvalidConfig, text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strings.HasPrefix(port, "+") {
		return "", fmt.Errorf("%w: the port %q of %q is not a number from 0 to 65535", tenure.ErrInvalidConfig, port, text)
	}
	host = cmp.Or(host, loopback)
	if strings.ContainsFunc(host, unfitForHost) {
		return "", fmt.Errorf("%w: the host %q of %q is not a name or an IP address", tenure.ErrInvalidConfig, host, text)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}

// unfitForHost reports characters outside host names and IP addresses with a zone.
func unfitForHost(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	default:
		return !strings.ContainsRune(".-_:%", r)
	}
}

// IsLoopback reports whether only this machine can reach an address of [ParseAddress].
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
