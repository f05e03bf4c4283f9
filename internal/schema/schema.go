package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/doorbell"
)

// Schema is the schema of an installation, for the packages above package postgres. It is
// safe for concurrent use.
type Schema struct {
	Names

	manual bool
	core   Backend
	usable sync.Map // until when each feature is known to have its tables, as a time.Time
	sound  sync.Map // until when the tables of each feature are known to be undamaged
	now    func() time.Time
}

// memory limits for how long a schema does not look for the tables of a feature again: an
// operator can remove them under a process without a session.
const memory = 10 * time.Second

// soundMemory limits for how long a schema does not look for damages of a feature again.
const soundMemory = time.Minute

// Backend has the backend's methods for a schema.
type Backend interface {
	// Migrate creates the tables of the core and of features.
	Migrate(ctx context.Context, features ...*Feature) error
	// CheckCore returns an error matching dberr.ErrSchema if the tables of the core are
	// newer and this program may not use them. Older or missing tables are not an error.
	CheckCore(ctx context.Context) error
	// CheckParts returns an error matching dberr.ErrDamaged if the tables of a feature are
	// not as its migrations made them.
	CheckParts(ctx context.Context, versions Versions, f *Feature) error
	// Listen calls wake, in this goroutine, whenever another process notifies a topic,
	// and once when it has begun to listen. It uses a separate connection and returns
	// nil when the context ends.
	Listen(ctx context.Context, topic string, wake func()) error
	// Attend is Listen for the reader of a doorbell.
	Attend(ctx context.Context, topic string, bell *doorbell.Bell) error
}

// New returns the schema of a backend. Unless manual is set, the first use of a
// feature creates its tables.
func New(names Names, manual bool, backend Backend) *Schema {
	return &Schema{Names: names, manual: manual, core: backend, now: time.Now}
}

// CheckCore is [Backend.CheckCore].
func (s *Schema) CheckCore(ctx context.Context) error { return s.core.CheckCore(ctx) }

// Listen is [Backend.Listen].
func (s *Schema) Listen(ctx context.Context, topic string, wake func()) error {
	return s.core.Listen(ctx, topic, wake)
}

// Attend is [Backend.Attend].
func (s *Schema) Attend(ctx context.Context, topic string, bell *doorbell.Bell) error {
	return s.core.Attend(ctx, topic, bell)
}

var of func(backend any) *Schema

// Provide is called by package postgres, because its backends have schemas.
func Provide(schemaOf func(backend any) *Schema) { of = schemaOf }

// Of returns the schema of a *postgres.Backend.
func Of(backend any) *Schema { return of(backend) }

// Has reports whether the tables of a feature are there. If they are newer than this
// program, or there are no tables at all, the error matches dberr.ErrSchema. The database
// must contain the schema.
func (s *Schema) Has(ctx context.Context, database Querier, f *Feature) (bool, error) {
	if s.known(f) {
		return true, nil
	}
	versions, err := s.Versions(ctx, database)
	if err != nil {
		return false, err
	}
	if versions == nil {
		return false, fmt.Errorf("%w: there are no tables in schema %q with prefix %q; a node creates them, or tenure migrate",
			dberr.ErrSchema, s.schema, s.prefix)
	}
	return s.check(versions, f)
}

// check reports whether a feature has tables, and remembers features with known tables.
func (s *Schema) check(versions Versions, f *Feature) (bool, error) {
	version := versions[f.Name]
	if err := version.Usable(f); err != nil {
		return false, err
	}
	if version.Present >= f.Newest() {
		s.remember(f)
	}
	return version.Present > 0, nil
}

// Ensure creates the tables of a feature, or brings them up to date, and checks from time
// to time that they are not damaged. An error matches dberr.ErrSchema if they are newer
// than this program, or if this program must not create them, and dberr.ErrPrivilege if
// the user may not.
func (s *Schema) Ensure(ctx context.Context, database Querier, f *Feature) error {
	if s.known(f) {
		return nil
	}
	versions, err := s.Versions(ctx, database)
	if err != nil {
		return err
	}
	if _, err := s.check(versions, f); err != nil {
		return err
	}
	if s.known(f) {
		return s.refuseDamage(ctx, versions, f)
	}
	if s.manual {
		return fmt.Errorf("%w: %s has version %d and version %d is needed: run tenure migrate up --feature %s",
			dberr.ErrSchema, f.Name, versions[f.Name].Present, f.Newest(), f.Name)
	}
	if err := s.core.Migrate(ctx, f); err != nil {
		if errors.Is(err, dberr.ErrPrivilege) {
			err = fmt.Errorf("%w: run tenure migrate up --feature %s as the owner of the schema", err, f.Name)
		}
		return fmt.Errorf("create the tables of %s: %w", f.Name, err)
	}
	s.remember(f)
	return nil
}

// refuseDamage returns an error if the tables of a feature are damaged.
func (s *Schema) refuseDamage(ctx context.Context, versions Versions, f *Feature) error {
	if until, found := s.sound.Load(f); len(f.Parts) == 0 || found && s.now().Before(until.(time.Time)) {
		return nil
	}
	if err := s.core.CheckParts(ctx, versions, f); err != nil {
		s.usable.Delete(f)
		return err
	}
	s.sound.Store(f, s.now().Add(soundMemory))
	return nil
}

func (s *Schema) known(f *Feature) bool {
	until, found := s.usable.Load(f)
	return found && s.now().Before(until.(time.Time))
}

func (s *Schema) remember(f *Feature) { s.usable.Store(f, s.now().Add(memory)) }

// Forget makes the schema look for all tables again.
func (s *Schema) Forget() {
	s.usable.Clear()
	s.sound.Clear()
}

// Tables are the tables of a feature in a database.
type Tables struct {
	*Schema

	Feature  *Feature
	Database Querier
}

// Exist is [Schema.Has] for these tables.
func (t Tables) Exist(ctx context.Context) (bool, error) { return t.Has(ctx, t.Database, t.Feature) }

// Create is [Schema.Ensure] for these tables.
func (t Tables) Create(ctx context.Context) error { return t.Ensure(ctx, t.Database, t.Feature) }

// Query sends a statement with objects in braces. While the tables are missing, it returns
// no rows.
func (t Tables) Query(ctx context.Context, template string, args ...any) (pgx.Rows, error) {
	exist, err := t.Exist(ctx)
	if err != nil || !exist {
		return noRows{err}, err
	}
	return t.Database.Query(ctx, t.SQL(template), args...)
}
