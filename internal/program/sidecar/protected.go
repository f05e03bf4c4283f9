package sidecar

import (
	"net/http"

	"github.com/exactly-one/tenure/internal/httpguard"
)

// protected lets only clients with the operators' token change something, and no page
// of another origin, whatever it knows.
func (h *Handler) protected(next http.HandlerFunc) http.HandlerFunc { return h.withToken(next, false) }

// private also lets viewers in: its answers must not be public.
func (h *Handler) private(next http.HandlerFunc) http.HandlerFunc { return h.withToken(next, true) }

// withToken answers clients with the operators' token and, if viewers is true, clients
// with the viewers' token.
func (h *Handler) withToken(next http.HandlerFunc, viewers bool) http.HandlerFunc {
	origins := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := origins.Check(r); err != nil {
			refuse(w, http.StatusForbidden, codeCrossOrigin, "requests of other origins are refused")
			return
		}
		if h.config.Token == nil {
			refuse(w, http.StatusForbidden, codeWritesOff, "writing is off: start the node with --token-file to allow it with that token")
			return
		}
		address, attempts := h.config.Proxies.Client(r), httpguard.AttemptsOf(r.Context(), h.attempts)
		given, brought := bearer(r.Header.Get("Authorization"))
		known, allowed, viewer, err := false, attempts.Allowed(address), false, error(nil)
		if brought {
			known, allowed, err = attempts.Check(r.Context(), address, func() (ok bool, err error) {
				ok, viewer, err = h.holder(given)
				return ok, err
			})
		}
		switch {
		case !allowed:
			w.Header().Set("Retry-After", "60")
			refuse(w, http.StatusTooManyRequests, codeGuessing, "too many wrong tokens; try again in a minute")
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, codeToken, "the node cannot use its token file; see its log")
		case !brought:
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "this needs the header Authorization: Bearer TOKEN")
		case !known:
			h.config.Logger.Warn("a request with a wrong token was refused", "path", r.URL.Path, "from", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure", error="invalid_token"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "the token is not the node's")
		case viewer && !viewers:
			refuse(w, http.StatusForbidden, codeViewer, "the token is a viewer's, who may change nothing: use an operator's")
		default:
			next(w, r)
		}
	}
}

// holder reports whether a token is valid, and whether it is the viewers' one. A token in
// both files is a viewer's.
func (h *Handler) holder(given string) (known, viewer bool, err error) {
	if h.config.ViewerToken != nil {
		viewer = h.config.ViewerToken.Matches(given)
	}
	known, err = h.config.Token.matches(given)
	if viewer {
		return true, true, nil
	}
	return known, false, err
}
