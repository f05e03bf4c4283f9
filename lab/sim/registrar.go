package sim

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

var _ tenure.RegistrySession = (*session)(nil)

// WriteDescription implements tenure.RegistrySession: the record, then the notification.
func (s *session) WriteDescription(description tenure.Description) error {
	err := s.call("describe", func(b *backend) error { return b.describe(description) })
	s.world.mu.Lock()
	s.undescribed = err != nil
	s.world.mu.Unlock()
	if err != nil {
		return err
	}
	return s.call("notify", func(b *backend) error {
		if !b.server.defects.SilentChanges {
			b.server.described(b)
		}
		return nil
	})
}

// Members implements tenure.RegistrySession.
func (s *session) Members() ([]tenure.Member, error) {
	return read(s, "members", (*server).members)
}

// Holders implements tenure.RegistrySession.
func (s *session) Holders(roles []string) ([]tenure.RoleHolder, error) {
	return read(s, "holders", func(server *server) []tenure.RoleHolder { return server.holders(roles) })
}

// read runs a statement that changes nothing.
func read[T any](s *session, name string, question func(*server) T) (answer T, err error) {
	var found T
	err = s.call(name, func(b *backend) error {
		found = question(b.server)
		return nil
	})
	if err != nil {
		return answer, err // the statement may still run
	}
	return found, nil
}

// Reads and changes by operators and members that do not use a session. With them,
// database implements cluster.Store.

// Members reads the registry.
func (d *database) Members(ctx context.Context) ([]tenure.Member, error) {
	return askFor(ctx, d, (*server).members)
}

// MarkDead marks nodes dead that were silent for longer than the threshold and
// their own lease.
func (d *database) MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error) {
	return askFor(ctx, d, func(s *server) []uuid.UUID { return s.markDead(threshold) })
}

// Forget removes a dead node.
func (d *database) Forget(ctx context.Context, node uuid.UUID) error {
	return d.ask(ctx, func(s *server) error {
		if len(s.forget(func(row *nodeRow) bool { return row.info.ID == node })) == 0 {
			return errNotDead(node)
		}
		return nil
	})
}

// ForgetDead removes the dead nodes whose last heartbeat is older than olderThan.
func (d *database) ForgetDead(ctx context.Context, olderThan time.Duration) ([]uuid.UUID, error) {
	return askFor(ctx, d, func(s *server) []uuid.UUID {
		return s.forget(func(row *nodeRow) bool { return row.silentFor(s) > olderThan })
	})
}

// askFor is ask for a request with a result.
func askFor[T any](ctx context.Context, d *database, question func(*server) T) (answer T, err error) {
	var found T
	err = d.ask(ctx, func(s *server) error {
		found = question(s)
		return nil
	})
	if err != nil {
		return answer, err // the request may still be sent
	}
	return found, nil
}
