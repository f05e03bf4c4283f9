package sidecar

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// namedPath is a path with the name of a role, a node or the like in it, between a prefix
// and a suffix.
type namedPath struct {
	prefix, value, suffix string
	methods               methods
}

// match returns the name in a path, decoded.
func (p namedPath) match(path string) (name string, ok bool) {
	rest, begins := strings.CutPrefix(path, p.prefix)
	segment, ends := strings.CutSuffix(rest, p.suffix)
	name, err := url.PathUnescape(segment)
	return name, begins && ends && err == nil && segment != "" && !strings.Contains(segment, "/")
}

// methods are the handlers of a path by method. HEAD is answered as GET is; the
// server leaves the body out.
type methods map[string]http.HandlerFunc

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if handle, ok := m[method]; ok {
		handle(w, r)
		return
	}
	allowed := slices.Sorted(maps.Keys(m))
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	refuse(w, http.StatusMethodNotAllowed, codeMethod, "this path takes only "+strings.Join(allowed, " and "))
}
