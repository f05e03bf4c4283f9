package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of trusted reverse proxies.
type Proxies []netip.Prefix

// Sent reports whether a request comes from one of them.
func (p Proxies) Sent(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(from.Addr().Unmap()) })
}

// Client returns the address under which the requests of a client are counted. Behind a
// trusted proxy it is the last address in X-Forwarded-For. An IPv6 address counts as its
// network.
func (p Proxies) Client(r *http.Request) string {
	from := r.RemoteAddr
	if p.Sent(r) {
		forwarded := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
		if last := strings.TrimSpace(forwarded[strings.LastIndex(forwarded, ",")+1:]); last != "" {
			from = last
		}
	}
	return Network(from)
}

// Network returns the network under which attempts from an address, with or without a
// port, are counted. For IPv6 it is the /64, because one host can use all of it.
func Network(from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	address, err := netip.ParseAddr(from)
	if err != nil {
		return "unknown"
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // 64 fits every address of IPv6
		return network.String()
	}
	return address.String()
}
