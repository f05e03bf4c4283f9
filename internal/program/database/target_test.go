package database

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

func TestMain(m *testing.M) {
	if os.Getenv(lookingUp) != "" {
		lookUpMain()
		return
	}
	pgtest.Main(mariatest.WithServers(m))
}

// parse reads a connection string that must be accepted.
func parse(t *testing.T, dsn string) *Target {
	t.Helper()
	target, err := Parse(dsn, nil)
	if err != nil {
		t.Fatalf("%s: %v", dsn, err)
	}
	return target
}

func TestConnectionStringsAreParsed(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]struct {
		dialect lease.Dialect
		session string
	}{
		"postgres://u@h/d":   {0, "postgres://u@h/d"},
		"POSTGRES://u@h/d":   {0, "postgres://u@h/d"},
		"postgresql://u@h/d": {0, "postgresql://u@h/d"},
		"postgres://u@h/d?tenure_mode=session&sslmode=disable": {0, "postgres://u@h/d?sslmode=disable"},
		"postgres://u@h/d?sslmode=disable&tenure%5Fmode=lease": {lease.PostgreSQL, "postgres://u@h/d?sslmode=disable"},
		"host=h dbname=d": {0, "host=h dbname=d"},
		"host = h password='a:b =c' tenure_mode = 'session'":     {0, "host = h password='a:b =c'"},
		"tenure_mode=lease host=h":                               {lease.PostgreSQL, "host=h"},
		"mysql://u:p@h/d":                                        {lease.MySQL, ""},
		"mariadb://u:p@h:3307/d":                                 {lease.MySQL, ""},
		"MariaDB://u@localhost/d?socket=/run/mysqld/mysqld.sock": {lease.MySQL, ""},
		"sqlite:local.db":                                        {lease.SQLite, ""},
		"sqlite:///tmp/x.db":                                     {lease.SQLite, ""},
	} {
		target, err := Parse(dsn, nil)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if target.Dialect() != want.dialect || target.session != want.session || target.Leases() != (want.dialect != 0) {
			t.Errorf("%s: got %v, %q, %v", dsn, target.Dialect(), target.session, target.Leases())
		}
	}
}

// A place names the servers and the database, and no password.
func TestPlaceHidesThePassword(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:secret@h/d":                   "d on h:5432",
		"postgres://u:secret@h:5433":                "u on h:5433",
		"host=a,b port=1,2 dbname=d user=u":         "d on a:1 or b:2",
		"host=/run/pg dbname=d user=u":              "d on /run/pg:5432",
		"postgres://u:secret@h/d?tenure_mode=lease": "d on h:5432",
		"sqlite:local.db":                           parse(t, "sqlite:local.db").String(),
		"mysql://u:secret@h/d":                      parse(t, "mysql://u:secret@h/d").String(),
	} {
		if got := parse(t, dsn).Place(); got != want {
			t.Errorf("%s: %q, want %q", dsn, got, want)
		}
	}
}

func TestParseRefusesUnknownStrings(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"redis://h":     `unknown scheme "redis": known are postgres://, postgresql://, mysql://, mariadb://, sqlite:`,
		"postgress://h": `unknown scheme "postgress": did you mean "postgres"? known are`,
		"sqlite3:x":     `did you mean "sqlite"?`,
		"postgres:h":    "begins with postgres://",
		"mysql:u@h/d":   "begins with mysql://",
		"nonsense":      "cannot be parsed",
		"postgres://u:secret@h/d?tenure_mode=leases":                    "tenure_mode must be session or lease",
		"postgres://u:secret@h/d?tenure_mode=lease&tenure_mode=session": "more than once",
		"host=h password=secret tenure_mode=lease tenure_mode=lease":    "more than once",
		"postgres://u:secret@h:x/d?tenure_mode=lease":                   "cannot be parsed",

		"mysql://u:se#secret@h/d":                       "percent-encoded",
		"mysql://u@h/d#secret":                          "percent-encoded",
		"mysql://u:secret/@h/d":                         "percent-encoded",
		"mysql://u:%zzsecret@h/d":                       "percent-encoded",
		"mysql://u:secret@h":                            "must name one database",
		"mysql://u:secret@h/":                           "must name one database",
		"mysql://u:secret@h/d/e":                        "must name one database",
		"mysql://h/d":                                   "names no user",
		"mysql://u:secret@/d":                           "names no host",
		"mysql://u:secret@h/d?socket=/s":                "exclude each other",
		"mysql://u:secret@h/d?parseTime=true":           `unknown parameter "parseTime" for MySQL: known are ca, cert, key, socket, tls`,
		"mysql://u:secret@h/d?tlss=true":                "did you mean tls?",
		"mysql://u:secret@h/d?tls=true&tls=false":       "must have one value",
		"mysql://u:secret@h/d?tls=":                     "must have one value",
		"mysql://u:secret@h/d?tls=%zz":                  "cannot be parsed",
		"mysql://u:secret@h/d?tls=yes":                  "tls must be true, skip-verify, preferred or false",
		"mysql://u:secret@h/d?ca=/nowhere/ca.pem":       "no such file",
		"mysql://u:secret@h/d?ca=x&tls=preferred":       "verifies nothing",
		"mysql://u:secret@h/d?cert=x":                   "belong together",
		"mysql://u:secret@h/d?cert=x&key=y&tls=false":   "with TLS only",
		"mysql://u:secret@h/d?cert=/nowhere/x&key=/n/y": "no such file",

		"sqlite:":                   "names no file",
		"sqlite://":                 "two slashes",
		"sqlite://relative.db":      "sqlite:///absolute/path.db or sqlite:relative.db",
		"sqlite:///":                "", // a directory, as opening it says
		"sqlite::memory:":           "each connection would have a separate one",
		"sqlite:///:memory:":        "each connection would have a separate one",
		"sqlite:file:x.db":          "without file:",
		"sqlite:x.db?mode=memory":   `unknown option "mode" for SQLite`,
		"sqlite:x%zz.db":            "written %25",
		"sqlite:x%00.db":            "zero byte",
		"sqlite:x.db?busy=1&cache=": `unknown option "busy"`,
	} {
		_, err := Parse(dsn, nil)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", dsn, err)
			}
			continue
		}
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", dsn, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", dsn, err)
		}
	}
}

func TestNamesShowNoPassword(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:secret@h/d":                   "PostgreSQL",
		"postgres://u:secret@h/d?tenure_mode=lease": "PostgreSQL, by leases",
		"mysql://u:secret@h/d":                      "MySQL, d at h:3306",
		"mysql://u:secret@[::1]:3307/d":             "MySQL, d at [::1]:3307",
		"sqlite:///var/lib/x.db":                    "SQLite, /var/lib/x.db",
	} {
		if got := parse(t, dsn).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSessionsAreNotOpenedForLeases(t *testing.T) {
	t.Parallel()
	_, err := parse(t, "postgres://u@h/d").Open(t.Context())
	if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "tenure_mode=lease") {
		t.Errorf("got %v", err)
	}
}
