package outboxtest

import (
	"encoding/json"
	"sync"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/children"
)

// process is a child, as its parent sees it.
type process struct {
	*children.Child
	t *testing.T

	mu   sync.Mutex
	last children.Report
}

// spawn starts a child, which is killed with the test. Every report also sends the
// child to reports.
func spawn(t *testing.T, o order, reports chan<- *process) *process {
	t.Helper()
	told, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t}
	p.Child, err = children.Start(children.Options{
		Name: o.Name, Env: []string{variable + "=" + string(told)},
		Note: func(r children.Report) bool {
			p.note(r, reports)
			return false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func (p *process) note(r children.Report, reports chan<- *process) {
	p.mu.Lock()
	p.last = r
	p.mu.Unlock()
	select {
	case reports <- p:
	default: // no test waits
	}
}

func (p *process) reported() children.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(s); err != nil {
		p.t.Fatalf("%v: %v", s, err)
	}
}
