package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

var errNoServer = errors.New("connection refused")

// database is the simulated database as one process reaches it.
type database struct {
	process *Process
	rnd     *stream // of requests outside a session
}

var _ tenure.Backend = (*database)(nil)

func (p *Process) database() *database {
	return &database{process: p, rnd: p.machine.world.stream(p.name + " pool")}
}

// Open implements tenure.Backend.
func (d *database) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	p, w := d.process, d.process.machine.world
	p.gate.wait(p.rnd)
	answer := make(chan error, 1)
	w.mu.Lock()
	if p.crashed {
		w.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", tenure.ErrRefused, errKilled)
	}
	p.id = opening.Node.ID
	s := &session{
		process: p, world: w, opening: opening, rnd: p.rnd.fork(),
		up: p.machine.sessionUp.connect(p.rnd.fork()), down: p.machine.sessionDown.connect(p.rnd.fork()),
		news: make(chan struct{}, 1), nodeNews: make(chan struct{}, 1), lost: make(chan struct{}), roles: map[string]*heldRole{},
	}
	p.sessions = append(p.sessions, s)
	s.up.send(func() {
		server := w.server
		var accept func(patience time.Duration)
		accept = func(patience time.Duration) {
			switch {
			case !server.up:
				s.down.send(func() { answer <- errNoServer })
			case s.up.closed: // the client has closed the connection in the meantime
			case !server.enter() && patience > 0:
				w.after(installationPause, func() { accept(patience - installationPause) })
			case server.dropped:
				s.down.send(func() { answer <- dberr.ErrInstallationInUse })
			case opening.UniqueName && server.nameTaken(opening.Node):
				s.down.send(func() { answer <- tenure.ErrNameTaken })
			default:
				s.backend = server.connect(s)
				s.down.send(func() { answer <- nil })
			}
		}
		w.after(server.rnd.between(time.Millisecond, 5*time.Millisecond), func() { accept(installationWait) })
	})
	w.mu.Unlock()

	var err error
	select {
	case err = <-answer:
	case <-s.lost:
		err = s.lossError()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.gate.wait(p.rnd)
	if err != nil {
		w.mu.Lock()
		s.disconnect(false)
		w.mu.Unlock()
		if !errors.Is(err, tenure.ErrTenure) {
			err = fmt.Errorf("%w: %w", tenure.ErrConnection, err)
		}
		return nil, err
	}
	return s, nil
}

// Leaders implements tenure.Backend.
func (d *database) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	var leaders []tenure.Leader
	sent := time.Now()
	err := d.ask(ctx, func(s *server) error {
		leaders = s.leaders(roles)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range leaders {
		leaders[i].ReadAt = sent
	}
	return leaders, nil
}

// Request implements tenure.Backend.
func (d *database) Request(ctx context.Context, request tenure.Request) error {
	if request.Kind == tenure.RequestHandOver {
		if err := d.offer(ctx, request); err != nil || request.Offer {
			return err
		}
	}
	return d.ask(ctx, func(s *server) error { return s.request(request) })
}

// ask sends one request to the server, on a separate connection.
func (d *database) ask(ctx context.Context, question func(*server) error) error {
	p, w := d.process, d.process.machine.world
	w.mu.Lock()
	rnd := d.rnd.fork()
	up, down := p.machine.poolUp.connect(rnd.fork()), p.machine.poolDown.connect(rnd.fork())
	w.mu.Unlock()
	p.gate.wait(rnd)
	answer := make(chan error, 1)
	w.mu.Lock()
	up.send(func() {
		err := errNoServer
		if w.server.up {
			err = errNoTables
		}
		if w.server.up && !w.server.dropped {
			err = question(w.server)
		}
		down.send(func() { answer <- err })
	})
	w.mu.Unlock()
	var err error
	select {
	case err = <-answer:
	case <-p.died:
		err = errKilled
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.gate.wait(rnd)
	w.mu.Lock()
	defer w.mu.Unlock()
	up.close()
	down.close()
	if err != nil && !errors.Is(err, tenure.ErrTenure) {
		err = fmt.Errorf("%w: %w", tenure.ErrConnection, err)
	}
	return err
}
