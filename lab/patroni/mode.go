//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// mode is how the servers replicate, and what is between them and the nodes.
type mode struct {
	option      string // of the command line
	name        string // in results
	synchronous bool
	// leasesToWait is the nodes' FailoverWait, in leases; 0: as the command line says.
	leasesToWait int
	// proxy puts HAProxy in front of the servers: the nodes know its address only.
	proxy bool
	// endSessions has HAProxy end the sessions on a server that is no longer primary.
	endSessions bool
	// only are the kinds of fault in this mode; default all that it allows.
	only []string
}

var modes = []mode{
	{option: "async", name: "asynchronous"},
	{option: "sync", name: "synchronous", synchronous: true},
	{option: "wait", name: "asynchronous, `FailoverWait` of 5 leases", leasesToWait: 5, only: []string{"split"}},
	{option: "haproxy", name: "asynchronous, HAProxy with `shutdown-sessions`", proxy: true, endSessions: true},
	{option: "haproxy-keep", name: "asynchronous, HAProxy without `shutdown-sessions`", proxy: true},
	{option: "haproxy-sync", name: "synchronous, HAProxy with `shutdown-sessions`", synchronous: true, proxy: true, endSessions: true},
}

func modeNames() []string {
	var all []string
	for _, m := range modes {
		all = append(all, m.option)
	}
	return all
}

// chooseModes finds modes by their options. "both" are the first two.
func chooseModes(options string) ([]mode, error) {
	switch options {
	case "both":
		return modes[:2], nil
	case "all":
		return modes, nil
	}
	var chosen []mode
	for option := range strings.SplitSeq(options, ",") {
		i := slices.IndexFunc(modes, func(m mode) bool { return m.option == option })
		if i < 0 {
			return nil, fmt.Errorf("unknown mode %q; there are both, all, %s", option, strings.Join(modeNames(), ", "))
		}
		chosen = append(chosen, modes[i])
	}
	return chosen, nil
}

// among lists the kinds of fault, of those chosen, that can be made in this mode.
func (m mode) among(chosen []kind, namespaces bool) []kind {
	return slices.DeleteFunc(slices.Clone(chosen), func(k kind) bool {
		return k.namespaces && !namespaces || k.proxy && !m.proxy || m.only != nil && !slices.Contains(m.only, k.name)
	})
}

// wait is the nodes' FailoverWait, or 0 for the default.
func (m mode) wait(o options) time.Duration {
	if m.leasesToWait > 0 {
		return time.Duration(m.leasesToWait) * o.lease
	}
	return o.failoverWait
}
