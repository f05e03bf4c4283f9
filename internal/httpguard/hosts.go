package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// AnyHost is the name that stands for all.
const AnyHost = "*"

// privateSuffixes end names that no public server of names answers for.
var privateSuffixes = []string{".localhost", ".local", ".internal", ".svc", ".cluster.local", ".home.arpa"}

// Hosts decides by which names a server may be asked. A hostile page can give its
// own name the address of a machine that only its visitor reaches, and would then
// be of the same origin (DNS rebinding).
type Hosts struct {
	names   []string
	machine string // the machine's own name
}

// NewHosts returns a check that allows some names besides those that every server
// has: exact ones, also with a port, those below *.DOMAIN, and all by [AnyHost].
func NewHosts(names ...string) *Hosts {
	machine, _ := os.Hostname() // without it, one name less
	h := &Hosts{machine: strings.ToLower(machine)}
	for _, name := range names {
		h.names = append(h.names, strings.ToLower(name))
	}
	return h
}

// Known reports whether the name in a request may be that of this server. On the
// loopback interface it is a name of the loopback interface or the machine's own.
// Elsewhere it may also be an address, which no page can pretend to be, a name
// without dots, or one that only a private network knows.
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

// Given reports whether the host of a request is one of the names that were given.
func (h *Hosts) Given(host string) bool {
	host = strings.ToLower(host)
	name := nameOf(host)
	return slices.ContainsFunc(h.names, func(given string) bool {
		domain, below := strings.CutPrefix(given, "*.")
		return given == AnyHost || given == host || given == name || below && strings.HasSuffix(name, "."+domain)
	})
}

// nameOf is the host of a request without its port, in lower case.
func nameOf(host string) string {
	host = strings.ToLower(host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// IsLoopbackName reports whether a name always leads to the machine that uses it.
func IsLoopbackName(host string) bool {
	host = nameOf(host)
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}

// OnLoopback reports whether a request came in over the loopback interface.
func OnLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}
