package dialects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
)

// libraryPrefix is the prefix with which a store uses the tables of gemstone_utils.
const libraryPrefix = "gemstone_"

// libraryTables returns the statements with which SQLAlchemy creates the tables of
// gemstone_utils.
func libraryTables(dialect lease.Dialect) []string {
	datetime := map[lease.Dialect]string{
		lease.PostgreSQL: "TIMESTAMP WITH TIME ZONE", lease.SQLite: "DATETIME", lease.MySQL: "DATETIME",
	}[dialect]
	return []string{
		strings.ReplaceAll(`
CREATE TABLE gemstone_election_candidate (
	ns VARCHAR(255) NOT NULL, 
	candidate_id VARCHAR(36) NOT NULL, 
	last_heartbeat_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	PRIMARY KEY (ns, candidate_id)
)`, "DATETIME", datetime),
		strings.ReplaceAll(`
CREATE TABLE gemstone_election_leader (
	ns VARCHAR(255) NOT NULL, 
	leader_id VARCHAR(36), 
	lease_expires_at DATETIME, 
	updated_at DATETIME NOT NULL, 
	PRIMARY KEY (ns)
)`, "DATETIME", datetime),
	}
}

// library elects as gemstone_utils does: by its own clock and in its own tables.
type library struct {
	kind
	db     *sql.DB
	window time.Duration
	skew   time.Duration // of its clock
}

// stamp returns a time as SQLAlchemy stores it.
func (l library) stamp(at time.Time) any {
	if l.dialect == lease.PostgreSQL {
		return at
	}
	return at.UTC().Format("2006-01-02 15:04:05.000000")
}

// parameters replaces ? by the dialect's parameters.
func (l library) parameters(query string) string {
	for i := 1; l.dialect == lease.PostgreSQL && strings.Contains(query, "?"); i++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", i), 1)
	}
	return query
}

// elect returns the leader afterwards and the end of its lease.
func (l library) elect(ctx context.Context, candidate uuid.UUID) (leader uuid.UUID, till time.Time, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return uuid.Nil, time.Time{}, err
	}
	defer tx.Rollback()
	query := "SELECT leader_id, lease_expires_at FROM gemstone_election_leader WHERE ns = ?"
	if l.dialect != lease.SQLite {
		query += " FOR UPDATE"
	}
	var id sql.NullString
	var expires any
	err = tx.QueryRowContext(ctx, l.parameters(query), "shared").Scan(&id, &expires)
	missing := errors.Is(err, sql.ErrNoRows)
	if err != nil && !missing {
		return uuid.Nil, time.Time{}, err
	}
	now := time.Now().Add(l.skew)
	if until := toTime(expires); id.Valid && id.String != candidate.String() && until.After(now) {
		leader, err = uuid.Parse(id.String)
		return leader, until, err
	}
	// SQLAlchemy's MySQL column takes whole seconds; the library trusts its own
	// reckoning.
	till = now.Add(l.window)
	query = "UPDATE gemstone_election_leader SET leader_id = ?, lease_expires_at = ?, updated_at = ? WHERE ns = ?"
	if missing {
		query = "INSERT INTO gemstone_election_leader (leader_id, lease_expires_at, updated_at, ns) VALUES (?, ?, ?, ?)"
	}
	if _, err := tx.ExecContext(ctx, l.parameters(query), candidate.String(), l.stamp(till), l.stamp(now), "shared"); err != nil {
		return uuid.Nil, time.Time{}, err
	}
	return candidate, till, tx.Commit()
}

// toTime converts a value that a driver returns for a time in UTC.
func toTime(value any) time.Time {
	switch v := value.(type) {
	case time.Time:
		return v
	case []byte:
		at, _ := time.Parse("2006-01-02 15:04:05.999999", string(v))
		return at
	case string:
		at, _ := time.Parse("2006-01-02 15:04:05.999999", v)
		return at
	default:
		return time.Time{}
	}
}

// The term number increases after changes of the leader that the library made without it.
func TestStoreAssignsTermsToTheLibrarysLeaders(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			execute(t, db, libraryTables(k.dialect)...)
			other := library{kind: k, db: db, window: 10 * time.Minute}
			elections := newStoreAt(t, k, db, time.Hour, libraryPrefix)
			a, b, c, d := uuid.New(), uuid.New(), uuid.New(), uuid.New()
			foreign := func(candidate uuid.UUID) {
				t.Helper()
				if leader, _, err := other.elect(t.Context(), candidate); err != nil || leader != candidate {
					t.Fatalf("the library elected %s, %v; want %s", leader, err, candidate)
				}
			}
			lapse := func() {
				execute(t, db, "UPDATE gemstone_election_leader SET lease_expires_at = '2001-01-01 00:00:00.000000'")
			}
			last := int64(0)
			grown := func(held store.Lease, by int64) {
				t.Helper()
				if held.Term < last+by {
					t.Fatalf("got %+v; want a term from %d on", held, last+by)
				}
				last = held.Term
			}
			elect := func(candidate, leader uuid.UUID, by int64) {
				t.Helper()
				held, err := elections.Elect(t.Context(), "shared", candidate)
				if err != nil {
					t.Fatal(err)
				}
				if held.Holder != leader || held.ValidFor <= 0 || by == 0 && held.Term != last {
					t.Fatalf("got %+v; want %s to lead; the last term was %d", held, leader, last)
				}
				grown(held, by)
			}
			foreign(b)
			elect(a, b, 1) // a term of the library's, of before the column
			elect(a, b, 0)
			lapse()
			elect(a, a, 1)
			lapse()
			foreign(c)
			elect(a, c, 1) // seen by a candidate that lost to it
			elect(b, c, 0)
			lapse()
			foreign(d)
			lapse()
			ahead := time.Now().Add(time.Hour).UnixMilli() // the clock does not help
			execute(t, db, fmt.Sprintf("UPDATE gemstone_election_leader SET term = %d", ahead))
			last = ahead
			elect(a, a, 2) // seen only by its successor
			lapse()
			foreign(b)
			held, err := elections.Leader(t.Context(), "shared")
			if err != nil || held.Holder != b {
				t.Errorf("Leader: %+v, %v; want %s", held, err, b)
			}
			grown(held, 1)
			// And the library respects a lease of ours.
			lapse()
			elect(a, a, 1)
			if leader, _, err := other.elect(t.Context(), b); err != nil || leader != a {
				t.Errorf("the library elected %s, %v; want %s to be returned", leader, err, a)
			}
			// If the library made the caller the leader, that is a term too, and
			// its lease is renewed.
			lapse()
			elect(b, b, 1)
			lapse()
			foreign(a)
			held, err = elections.Elect(t.Context(), "shared", a)
			if err != nil || held.Holder != a || held.ValidFor <= other.window {
				t.Errorf("got %+v, %v; want %s to lead for longer than %v", held, err, a, other.window)
			}
			grown(held, 1)
		})
	}
}

// Both elect for the same lease concurrently, and neither treats itself as the leader before
// the other's lease has expired.
func TestStoreAndLibraryHaveOneLeader(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			execute(t, db, libraryTables(k.dialect)...)
			const window = 400 * time.Millisecond
			elections := newStoreAt(t, k, db, window, libraryPrefix)
			if err := elections.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			type span struct {
				candidate  uuid.UUID
				from, till time.Time
			}
			var mu sync.Mutex
			var spans []span
			leaders := map[int64]uuid.UUID{}
			begun, changes := time.Now(), 0
			enough := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return time.Since(begun) > 6*time.Second && changes >= 3
			}
			// compete elects until the leader has changed several times, and is
			// silent for a while after each success.
			compete := func(ctx context.Context, elect func(context.Context, uuid.UUID) (uuid.UUID, time.Time, error)) {
				id := uuid.New()
				for ctx.Err() == nil && !enough() {
					leader, till, err := elect(ctx, id)
					if err != nil && ctx.Err() == nil && !passes(err) {
						t.Errorf("elect: %v", err)
						return
					}
					pause := 5 * time.Millisecond
					if err == nil && leader == id {
						mu.Lock()
						if len(spans) > 0 && spans[len(spans)-1].candidate != id {
							changes++
						}
						spans = append(spans, span{id, time.Now(), till})
						mu.Unlock()
						pause = rand.N(2 * window)
					}
					select {
					case <-time.After(pause):
					case <-ctx.Done():
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var running sync.WaitGroup
			for range 2 {
				running.Go(func() {
					compete(ctx, library{kind: k, db: db, window: window}.elect)
				})
				running.Go(func() {
					compete(ctx, func(ctx context.Context, id uuid.UUID) (uuid.UUID, time.Time, error) {
						held, err := elections.Elect(ctx, "shared", id)
						if err == nil {
							mu.Lock()
							defer mu.Unlock()
							if before, known := leaders[held.Term]; known && before != held.Holder {
								t.Errorf("term %d is led by %s and by %s", held.Term, before, held.Holder)
							}
							leaders[held.Term] = held.Holder
						}
						return held.Holder, held.ReadAt.Add(held.ValidFor), err
					})
				})
			}
			running.Wait()
			for i := 1; i < len(spans); i++ {
				before, after := spans[i-1], spans[i]
				if before.candidate != after.candidate && after.from.Before(before.till) {
					t.Errorf("%s led %v before the lease of %s was over", after.candidate, before.till.Sub(after.from), before.candidate)
				}
			}
			if !enough() {
				t.Errorf("the leader changed only %d times", changes)
			}
		})
	}
}

// passes reports whether an error comes from contention. The library retries after such
// errors, also if two transactions add the first row.
func passes(err error) bool {
	if errors.Is(err, dberr.ErrBusy) {
		return true
	}
	return slices.ContainsFunc([]string{
		"database is locked", "UNIQUE constraint failed", // SQLite
		"SQLSTATE 23505",                    // PostgreSQL
		"Deadlock found", "Duplicate entry", // MariaDB
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}
