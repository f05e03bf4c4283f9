package serve

import (
	"net/http"
	"sync"

	"github.com/exactly-one/tenure/server/dashboard"
)

// latePage is the dashboard. It exists from the first response of the database until it
// is closed.
type latePage struct {
	mu   sync.RWMutex
	page *dashboard.Dashboard
}

// open creates the dashboard, once.
func (p *latePage) open(config dashboard.Config) error {
	page, err := dashboard.New(config)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page = page
	return nil
}

// close closes the dashboard and its streams.
func (p *latePage) close() {
	p.mu.Lock()
	page := p.page
	p.page = nil
	p.mu.Unlock()
	if page != nil {
		page.Close()
	}
}

// ServeHTTP implements http.Handler.
func (p *latePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, func(page *dashboard.Dashboard) http.Handler { return page })
}

// protect lets only viewers of the dashboard see the responses of next.
func (p *latePage) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, func(page *dashboard.Dashboard) http.Handler { return page.Protect(next) })
	})
}

func (p *latePage) serve(w http.ResponseWriter, r *http.Request, handler func(*dashboard.Dashboard) http.Handler) {
	p.mu.RLock()
	page := p.page
	p.mu.RUnlock()
	if page == nil {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Refresh", "2") // the page appears when it is ready
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "Tenure is waiting for its database.", http.StatusServiceUnavailable)
		return
	}
	handler(page).ServeHTTP(w, r)
}
