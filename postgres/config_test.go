package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

func TestNewRejectsInvalidConfig(t *testing.T) {
	const dsn = "postgres://localhost/db"
	for name, config := range map[string]Config{
		"long schema":  {Schema: strings.Repeat("s", 64)},
		"long prefix":  {Prefix: strings.Repeat("p", 33)},
		"NUL":          {Schema: "a\x00b"},
		"not UTF-8":    {Prefix: "\xff"},
		"a quote":      {Prefix: schema.FunctionQuote},
		"long watch":   {WatchPeriod: time.Minute},
		"short watch":  {WatchPeriod: -1},
		"long program": {ApplicationName: strings.Repeat("a", 64)},
	} {
		if _, err := New(dsn, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v; want ErrInvalidConfig", name, err)
		}
	}
}

func TestNewNeverShowsThePassword(t *testing.T) {
	const password = "hunter2"
	for _, dsn := range []string{
		"postgres://user:" + password + "@host:notaport/db",
		"postgres://user:" + password + "%zz@host/db",
		"postgres://user:" + password + "@ho st/db",
		"postgres://user:" + password + "@host/db?sslmode=bogus",
		"postgres://user:" + password + "@host/db?connect_timeout=bogus",
		"host=h password='" + password,
		"host=h password=" + password + " port=99999999",
		"host=h user=u password=" + password + " sslmode=" + password,
		password,
		"postgres//user:" + password + "@host/db",
		"postgres://user:`: invalid port " + password + "@[::1/db",
	} {
		_, err := New(dsn, Config{})
		if !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%q: %v; want ErrInvalidConfig", dsn, err)
			continue
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("%q: the error shows the password: %v", dsn, err)
		}
	}
}

func TestNewRequiresADatabaseName(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE", "PGPORT", "PGUSER"} {
		t.Setenv(name, "")
	}
	_, err := New("", Config{})
	if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "PGHOST") {
		t.Errorf("%v; want ErrInvalidConfig with the choices", err)
	}
	t.Setenv("PGHOST", "somewhere")
	if _, err := New("", Config{}); err != nil {
		t.Errorf("with PGHOST: %v", err)
	}
}
