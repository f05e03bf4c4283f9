package faultwire

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// injection is a statement that the client knows nothing of.
type injection struct {
	done chan struct{} // closed when err is set
	err  error
}

// Inject runs a statement in the session behind the client's back: as soon as the
// server waits for the client outside a transaction, the statement is sent and its
// whole answer withheld; what the client sends during that time waits. Inject
// returns when the server has answered, with a *pgconn.PgError if the statement
// failed. It needs an established connection without TLS, on which the client does
// not send one query before it has the answer to the last.
//
// If the context ends after the statement was sent, the answer is still
// withheld.
func (c *Conn) Inject(ctx context.Context, statement string) error {
	running, err := c.session.beginInjection(ctx)
	if err != nil {
		return fmt.Errorf("inject %q: %w", statement, err)
	}
	query, err := (&pgproto3.Query{String: statement}).Encode(nil)
	if err == nil {
		// An idle session has read all it was sent: this does not block.
		_, err = c.session.server.Write(query)
	}
	if err != nil {
		c.session.endInjection(err)
	}
	select {
	case <-running.done:
		err = running.err
	case <-c.done:
		err = errEnded
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("inject %q: %w", statement, err)
	}
	return nil
}

var (
	errEnded  = errors.New("the connection ended")
	errOpaque = errors.New("the connection is encrypted")
)

// beginInjection waits for the moment to inject and keeps it.
func (s *session) beginInjection(ctx context.Context) (*injection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.opaque {
			return nil, errOpaque
		}
		if s.idle && s.injection == nil && len(s.backend.message) == 0 {
			s.injection = &injection{done: make(chan struct{})}
			return s.injection, nil
		}
		changed := s.changed.next()
		s.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-s.done:
			err = errEnded
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// awaitInjection waits until no injected statement runs. s.mu is held.
func (s *session) awaitInjection() {
	for s.injection != nil {
		changed := s.changed.next()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-s.done:
			s.mu.Lock()
			return
		}
		s.mu.Lock()
	}
}

// answered takes note of a message that answers the injected statement. s.mu is
// held.
func (s *session) answered(message []byte) {
	switch message[0] {
	case errorResponse:
		var response pgproto3.ErrorResponse
		if err := response.Decode(message[headerSize:]); err != nil {
			s.injection.err = err
			return
		}
		s.injection.err = pgconn.ErrorResponseToPgError(&response)
	case readyForQuery:
		s.finishInjection()
	}
}

// endInjection ends an injection that gets no answer.
func (s *session) endInjection(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.injection != nil {
		s.injection.err = errors.Join(s.injection.err, err)
		s.finishInjection()
	}
}

func (s *session) finishInjection() {
	close(s.injection.done)
	s.injection = nil
	s.changed.send()
}

// ended is called when the server's stream has ended.
func (s *session) ended() {
	s.endInjection(errEnded)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opaque = true
	s.changed.send()
}
