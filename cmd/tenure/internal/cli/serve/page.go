package serve

import (
	"net/http"
	"sync"

	"github.com/exactly-one/tenure/dashboard"
)

// latePage is the dashboard, which there is not before the database has answered,
// nor after its end.
type latePage struct {
	mu   sync.RWMutex
	page *dashboard.Dashboard
}

// open makes the dashboard, once.
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

// close ends the dashboard and its streams.
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

// protect lets those see what next answers who may look at the dashboard.
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
		w.Header().Set("Refresh", "2") // who has opened it sees the page when it is there
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "Tenure waits for its database.", http.StatusServiceUnavailable)
		return
	}
	handler(page).ServeHTTP(w, r)
}
