package lease

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// Every statement of a store is complete in every dialect.
func TestStoreQueriesAreRendered(t *testing.T) {
	t.Parallel()
	for _, dialect := range []Dialect{PostgreSQL, SQLite, MySQL} {
		q := newStoreQueries(dialect, StoreConfig{}.withDefaults())
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
		if found < 15 {
			t.Errorf("%v: only %d statements were found", dialect, found)
		}
		for _, table := range q.tables {
			if statement := table.create(); strings.ContainsAny(statement, "{}") || !strings.HasPrefix(statement, "CREATE TABLE ") {
				t.Errorf("%v: %s", dialect, statement)
			}
		}
	}
}

func TestStoreQueriesNumberParameters(t *testing.T) {
	t.Parallel()
	q := newStoreQueries(PostgreSQL, StoreConfig{}.withDefaults())
	numbers := func(statement string) []string { return regexp.MustCompile(`\$\d+`).FindAllString(statement, -1) }
	if got := numbers(q.fill(q.touch, 2)); !slices.Equal(got, []string{"$1", "$2", "$3", "$4"}) {
		t.Errorf("touch: %v", got)
	}
	if got := numbers(q.fill(q.renew, 3)); !slices.Equal(got, []string{"$1", "$2", "$3", "$4", "$5"}) {
		t.Errorf("renew: %v", got)
	}
	if n := len(numbers(q.fill(q.touch, maxNamespaces))); n > 999 {
		t.Errorf("%d parameters: more than every version of SQLite takes", n)
	}
}

// A window is written exactly, or a little longer where the database cannot.
func TestStoreWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect Dialect
		window  time.Duration
		want    string
	}{
		{PostgreSQL, time.Minute, "interval '60.000000 seconds'"},
		{PostgreSQL, 1500*time.Microsecond + 1, "interval '0.001501 seconds'"},
		{PostgreSQL, 48 * time.Hour, "interval '172800.000000 seconds'"},
		{SQLite, time.Minute, "'+60.000 seconds'"},
		{SQLite, 1500 * time.Microsecond, "'+0.002 seconds'"},
		{MySQL, time.Minute, "INTERVAL 60000000 MICROSECOND"},
		{MySQL, 1500*time.Microsecond + 1, "INTERVAL 1501 MICROSECOND"},
	} {
		q := newStoreQueries(test.dialect, StoreConfig{Window: test.window, Prefix: "p_"})
		if statement := q.fill(q.renew, 1); !strings.Contains(statement, test.want) {
			t.Errorf("%v, %v: want %s in %s", test.dialect, test.window, test.want, statement)
		}
	}
}

func TestStoreTableChanges(t *testing.T) {
	t.Parallel()
	leaders := newStoreQueries(MySQL, StoreConfig{Prefix: "p_"}).tables[1]
	library := map[string]bool{"ns": true, "leader_id": true, "lease_expires_at": false, "updated_at": false}
	changes, err := leaders.changes(library)
	want := []string{
		"ALTER TABLE `p_election_leader` MODIFY COLUMN lease_expires_at datetime(6)",
		"ALTER TABLE `p_election_leader` MODIFY COLUMN updated_at datetime(6) NOT NULL",
		"ALTER TABLE `p_election_leader` ADD COLUMN term bigint NOT NULL DEFAULT 0",
		"ALTER TABLE `p_election_leader` ADD COLUMN term_leader_id varchar(36)",
	}
	if err != nil || !slices.Equal(changes, want) {
		t.Errorf("got %q, %v; want %q", changes, err, want)
	}
	fitting := map[string]bool{"another": true}
	for _, c := range leaders.columns {
		fitting[c.name] = true
	}
	if changes, err := leaders.changes(fitting); err != nil || len(changes) != 0 {
		t.Errorf("a table that fits: %q, %v", changes, err)
	}
	if _, err := leaders.changes(map[string]bool{"ns": true}); !errors.Is(err, tenure.ErrSchema) {
		t.Errorf("another program's table: %v; want ErrSchema", err)
	}
}
