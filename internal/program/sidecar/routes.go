package sidecar

import (
	"maps"
	"net/http"
	"slices"
)

// routes lists every path. It does not use an http.ServeMux: its patterns do not match a
// role named "/", however it is encoded, and it answers some paths with redirects.
func (h *Handler) routes() {
	get := func(f http.HandlerFunc) methods { return methods{http.MethodGet: f} }
	h.paths = map[string]methods{
		"/healthz":         get(h.healthy),
		"/readyz":          get(h.ready),
		"/leader":          get(h.leading),
		"/v1/elections":    get(h.elections),
		"/v1/leaders":      get(h.leaders),
		"/v1/cluster":      get(h.cluster),
		"/v1/nodes":        get(h.allNodes),
		"/v1/nodes/watch":  get(h.streaming(h.nodes)),
		"/v1/events":       get(h.streaming(h.feed)),
		"/v1/openapi.json": get(describe),
	}
	if h.config.Metrics != nil {
		h.paths["/metrics"] = get(h.config.Metrics.ServeHTTP)
	}
	post := func(f http.HandlerFunc) methods { return methods{http.MethodPost: h.protected(f)} }
	h.named = []namedPath{
		{"/v1/elections/", "role", "/step-down", post(h.stepDown)},
		{"/v1/leaders/", "role", "", get(h.leader)},
		{"/v1/roles/", "role", "/guards", post(h.guard)},
		{"/v1/nodes/", "node", "/drain", post(h.drain)},
		{"/v1/nodes/", "node", "/undrain", post(h.undrain)},
		{"/v1/nodes/", "node", "", get(h.oneNode)},
	}
	for _, routes := range []func() (map[string]methods, []namedPath){h.scheduleRoutes, h.processorRoutes, h.auditRoutes} {
		paths, named := routes()
		maps.Copy(h.paths, paths)
		h.named = append(h.named, named...)
	}
}

// route finds who answers a request.
func (h *Handler) route(r *http.Request) http.Handler {
	path := r.URL.EscapedPath()
	if found, ok := h.paths[path]; ok {
		if slices.Contains(healthPaths, path) {
			return found
		}
		return h.guarded(found)
	}
	for _, p := range h.named {
		if name, ok := p.match(path); ok {
			r.SetPathValue(p.value, name)
			return h.guarded(p.methods)
		}
	}
	if h.config.Page != nil {
		return h.config.Page
	}
	return http.HandlerFunc(nothing)
}

// healthPaths are for service managers and load balancers, which do not authenticate.
var healthPaths = []string{"/healthz", "/readyz", "/leader"}

func (h *Handler) guarded(next http.Handler) http.Handler {
	if h.config.Protect == nil {
		return next
	}
	return h.config.Protect(next)
}

// nothing answers unknown paths.
func nothing(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotFound, codeNotFound, "there is nothing at this path; see /v1/openapi.json")
}
