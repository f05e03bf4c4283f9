package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// AnyHost allows every host name.
const AnyHost = "*"

// privateSuffixes end names not resolved by any public DNS server.
var privateSuffixes = []string{".localhost", ".local", ".internal", ".svc", ".cluster.local", ".home.arpa"}

// Hosts decides under which host names a server answers. A hostile page can point its own
// name at a machine that only its visitor can reach, and would then be of the same origin
// (DNS rebinding).
type Hosts struct {
	names   []string
	machine string // the machine's own name
}

// NewHosts returns a check that allows names in addition to the ones [Hosts.Known] always
// allows: exact names, also with a port, names below *.DOMAIN, and all names with
// [AnyHost].
func NewHosts(names ...string) *Hosts {
	machine, _ := os.Hostname() // without it, one name less
	h := &Hosts{machine: strings.ToLower(machine)}
	for _, name := range names {
		h.names = append(h.names, strings.ToLower(name))
	}
	return h
}

// Known reports whether the name in a request may be a name of this server. On the
// loopback interface it is a name of the loopback interface or the machine's own.
// Elsewhere it may also be an address (no page can forge it), a name without dots, or a
// name with a private suffix.
func (h *Hosts) Known(r *http.Request) bool {
	host := nameOf(r.Host)
	if h.Given(r.Host) || IsLoopbackName(host) || host != "" && host == h.machine {
		return true
	}
	if OnLoopback(r) {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(privateSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// Given reports whether the host of a request matches a name given to [NewHosts].
func (h *Hosts) Given(host string) bool {
	host = strings.ToLower(host)
	name := nameOf(host)
	return slices.ContainsFunc(h.names, func(given string) bool {
		domain, below := strings.CutPrefix(given, "*.")
		return given == AnyHost || given == host || given == name || below && strings.HasSuffix(name, "."+domain)
	})
}

// nameOf returns the host of a request without its port, in lower case.
func nameOf(host string) string {
	host = strings.ToLower(host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// IsLoopbackName reports whether a name always resolves to the local machine.
func IsLoopbackName(host string) bool {
	host = nameOf(host)
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}

// OnLoopback reports whether a request arrived on the loopback interface.
func OnLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}
