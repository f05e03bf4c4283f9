package dialects

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// replacements are the ways to remove or replace the SQLite file of a leader, or what SQLite
// keeps beside it.
var replacements = map[string]func(t *testing.T, path string){
	"removed": func(t *testing.T, path string) {
		remove(t, path, path+"-wal", path+"-shm")
	},
	"index removed": func(t *testing.T, path string) {
		remove(t, path+"-shm")
	},
	"log and index removed": func(t *testing.T, path string) {
		remove(t, path+"-wal", path+"-shm")
	},
	"a copy moved over it": func(t *testing.T, path string) {
		for _, part := range []string{"", "-wal"} {
			content, err := os.ReadFile(path + part)
			if err == nil {
				err = os.WriteFile(path+part+".copy", content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		remove(t, path+"-shm")
		for _, part := range []string{"-wal", ""} {
			if err := os.Rename(path+part+".copy", path+part); err != nil {
				t.Fatal(err)
			}
		}
	},
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// If new connections would open another file than the leader has, the leader stops at its
// next poll, or at its next heartbeat if only the log and its index are other files, and
// continues with the file at the path.
func TestBackendReplacedFileEndsTheSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	// A heartbeat comes after 9 s, and trust would end after 24 s.
	const lease, byPoll, byHeartbeat = 27 * time.Second, 6 * time.Second, 18 * time.Second
	for name, most := range map[string]time.Duration{
		"removed": byPoll, "a copy moved over it": byPoll, "log and index removed": byHeartbeat, "index removed": byHeartbeat,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, sqliteKind)
			c.config.Lease = lease
			a := c.join("a").campaign(backendRole)
			term := leads(t, a)
			replacements[name](t, pathOf(c.source))
			replaced := time.Now()
			if cause := ended(t, term); !errors.Is(cause, tenure.ErrSuperseded) {
				t.Errorf("the term ended with %v; want ErrSuperseded", cause)
			}
			if took := time.Since(replaced); took > most {
				t.Errorf("the term ended after %v; want at most %v", took, most)
			}
			b := c.join("b").campaign(backendRole)
			next := leaderOf(t, term.Number(), a, b)
			if next.Number() <= term.Number() {
				t.Errorf("term %d follows term %d", next.Number(), term.Number())
			}
			oneLeader(t, a, b)
			if err := next.Resign(soon(t)); err != nil {
				t.Fatal(err)
			}
			leaderOf(t, next.Number(), a, b)
		})
	}
}

// pathOf returns the path in a SQLite source.
func pathOf(source string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(source, "file:"), "?")
	return path
}

// A result of the store is from the file at the path, or an error.
func TestStoreDetectsReplacedFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"removed", "a copy moved over it", "index removed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := sqliteKind.source(t)
			elections := newStore(t, sqliteKind, sqliteKind.connect(t, source), time.Hour)
			a, b := uuid.New(), uuid.New()
			first, err := elections.Elect(t.Context(), "n", a)
			if err != nil {
				t.Fatal(err)
			}
			replacements[name](t, pathOf(source))
			if held, err := elections.Elect(t.Context(), "n", a); !errors.Is(err, tenure.ErrSuperseded) {
				t.Fatalf("got %+v, %v; want ErrSuperseded", held, err)
			}
			other := newStore(t, sqliteKind, sqliteKind.connect(t, source), time.Hour)
			if _, err := other.Elect(t.Context(), "n", b); err != nil {
				t.Fatal(err)
			}
			// The pool has discarded the connections to the old file.
			held, err := elections.Elect(t.Context(), "n", a)
			if want, _ := other.Leader(t.Context(), "n"); err != nil || held.Holder != want.Holder || held.Term != want.Term || held.Term < first.Term {
				t.Errorf("got %+v, %v; want %+v", held, err, want)
			}
		})
	}
}
