package store

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

func TestQueriesLeaveNoPlaceholder(t *testing.T) {
	t.Parallel()
	for _, dialect := range []sqldb.Dialect{sqldb.PostgreSQL, sqldb.SQLite, sqldb.MySQL} {
		q := newQueries(dialect, Config{}.withDefaults(dialect))
		fields, found := reflect.ValueOf(q).Elem(), 0
		for i := range fields.NumField() {
			if fields.Field(i).Kind() != reflect.String {
				continue
			}
			found++
			name := fields.Type().Field(i).Name
			for _, n := range []int{1, 3, maxNamespaces} {
				if statement := q.fill(fields.Field(i).String(), n); strings.ContainsAny(statement, "{}") {
					t.Errorf("%v: %s has a placeholder left: %s", dialect, name, statement)
				}
			}
		}
		if found < 13 {
			t.Errorf("%v: only %d statements were found", dialect, found)
		}
		for _, table := range q.tables {
			if statement := table.create(); strings.ContainsAny(statement, "{}") || !strings.HasPrefix(statement, "CREATE TABLE ") {
				t.Errorf("%v: %s", dialect, statement)
			}
		}
	}
}

func TestQueriesNumberParameters(t *testing.T) {
	t.Parallel()
	q := newQueries(sqldb.PostgreSQL, Config{}.withDefaults(sqldb.PostgreSQL))
	numbers := func(statement string) []string { return regexp.MustCompile(`\$\d+`).FindAllString(statement, -1) }
	if got := numbers(q.fill(q.register, 2)); !slices.Equal(got, []string{"$1", "$2", "$3", "$4"}) {
		t.Errorf("touch: %v", got)
	}
	if got := numbers(q.fill(q.renew, 3)); !slices.Equal(got, []string{"$1", "$2", "$3", "$4", "$5"}) {
		t.Errorf("renew: %v", got)
	}
	if n := len(numbers(q.fill(q.register, maxNamespaces))); n > 999 {
		t.Errorf("%d parameters: more than every version of SQLite takes", n)
	}
}

// Where a database cannot store the window exactly, it is rounded up.
func TestQueriesNeverShortenWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect sqldb.Dialect
		window  time.Duration
		want    string
	}{
		{sqldb.PostgreSQL, time.Minute, "interval '60.000000 seconds'"},
		{sqldb.PostgreSQL, 1500*time.Microsecond + 1, "interval '0.001501 seconds'"},
		{sqldb.PostgreSQL, 48 * time.Hour, "interval '172800.000000 seconds'"},
		{sqldb.SQLite, time.Minute, "'+60.000 seconds'"},
		{sqldb.SQLite, 1500 * time.Microsecond, "'+0.002 seconds'"},
		{sqldb.MySQL, time.Minute, "INTERVAL 60000000 MICROSECOND"},
		{sqldb.MySQL, 1500*time.Microsecond + 1, "INTERVAL 1501 MICROSECOND"},
	} {
		q := newQueries(test.dialect, Config{Window: test.window, Prefix: "p_"})
		if statement := q.fill(q.renew, 1); !strings.Contains(statement, test.want) {
			t.Errorf("%v, %v: want %s in %s", test.dialect, test.window, test.want, statement)
		}
	}
}

func TestTableChangesAddMissingColumns(t *testing.T) {
	t.Parallel()
	leaders := newQueries(sqldb.MySQL, Config{Prefix: "p_"}).tables[1]
	other := map[string]bool{"ns": true, "leader_id": true, "lease_expires_at": false, "updated_at": false}
	changes, err := leaders.changes(other)
	want := []string{
		"ALTER TABLE `p_election_leader` MODIFY COLUMN lease_expires_at datetime(6)",
		"ALTER TABLE `p_election_leader` MODIFY COLUMN updated_at datetime(6) NOT NULL",
		"ALTER TABLE `p_election_leader` ADD COLUMN term bigint NOT NULL DEFAULT 0",
		"ALTER TABLE `p_election_leader` ADD COLUMN term_leader_id varchar(36)",
	}
	if err != nil || !slices.Equal(changes, want) {
		t.Errorf("got %q, %v; want %q", changes, err, want)
	}
	complete := map[string]bool{"another": true}
	for _, c := range leaders.columns {
		complete[c.name] = true
	}
	if changes, err := leaders.changes(complete); err != nil || len(changes) != 0 {
		t.Errorf("a complete table: got %q, %v; want no changes", changes, err)
	}
	if _, err := leaders.changes(map[string]bool{"ns": true}); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("another program's table: %v; want ErrSchema", err)
	}
}
