package store

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

func TestNewChecksConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dialect lease.Dialect
		config  Config
		want    string // part of the message; empty if it is valid
	}{
		"defaults":                 {lease.PostgreSQL, Config{}, ""},
		"shortest window":          {lease.SQLite, Config{Window: time.Millisecond}, ""},
		"window too short":         {lease.SQLite, Config{Window: time.Millisecond - 1}, "at least 1ms"},
		"negative window":          {lease.SQLite, Config{Window: -time.Second}, "at least 1ms"},
		"window too long":          {lease.SQLite, Config{Window: math.MaxInt64}, "at most 87600h"},
		"longest prefix":           {lease.MySQL, Config{Prefix: strings.Repeat("p", 40)}, ""},
		"prefix too long":          {lease.MySQL, Config{Prefix: strings.Repeat("p", 41)}, "at most 40"},
		"prefix with another case": {lease.MySQL, Config{Prefix: "App_"}, "lower-case"},
		"prefix with a schema":     {lease.PostgreSQL, Config{Prefix: "app."}, "lower-case"},
		"prefix with a quote":      {lease.SQLite, Config{Prefix: `a"`}, "lower-case"},
		"schema":                   {lease.PostgreSQL, Config{Schema: "app"}, ""},
		"schema on SQLite":         {lease.SQLite, Config{Schema: "app"}, "no schemas"},
		"schema with a parameter":  {lease.PostgreSQL, Config{Schema: "a?"}, "must not contain"},
		"no dialect":               {0, Config{}, "no SQL dialect 0"},
		"unknown dialect":          {9, Config{}, "no SQL dialect 9"},
	} {
		store, err := New(nil, test.dialect, test.config)
		if test.want == "" {
			if err != nil || store == nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want ErrInvalidConfig with %q", name, err, test.want)
		}
	}
	if c := (Config{}).withDefaults(sqldb.PostgreSQL); c.Window != time.Minute || c.Prefix != "tenure_" || c.Schema != "public" || c.Logger == nil {
		t.Errorf("got the defaults %+v; want a minute, tenure_, public and a logger", c)
	}
}

func TestCheckNamespaceRejectsInvalidNames(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"default", "a", " a ", strings.Repeat("é", 255)} {
		if got, err := checkNamespace(namespace); err != nil || got != namespace {
			t.Errorf("%q: %q, %v", namespace, got, err)
		}
	}
	if got, err := checkNamespace(""); err != nil || got != "default" {
		t.Errorf("the empty namespace is %q, %v", got, err)
	}
	for namespace, want := range map[string]string{
		strings.Repeat("é", 256): "256 characters", "a\x00": "control", "a\u0085": "control", "\xc3": "UTF-8",
	} {
		if _, err := checkNamespace(namespace); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want ErrInvalidConfig with %q", namespace, err, want)
		}
	}
	if _, err := checkCandidate("a", uuid.Nil); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("the nil UUID: %v", err)
	}
}

func TestParseIDAcceptsOnlyTheUsualForm(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	if got, err := parseID("n", id.String()); err != nil || got != id {
		t.Errorf("got %s, %v", got, err)
	}
	text := id.String()
	for _, text := range []string{"", "worker", strings.ReplaceAll(text, "-", ""), "{" + text + "}", "urn:uuid:" + text, uuid.Nil.String()} {
		var foreign *ForeignRowError
		_, err := parseID("n", text)
		if !errors.As(err, &foreign) || foreign.ID != text || !errors.Is(err, tenure.ErrLock) {
			t.Errorf("%q: %v; want a ForeignRowError", text, err)
		}
	}
}

func TestHeldByExpiresWithTheLease(t *testing.T) {
	t.Parallel()
	a, now := uuid.New(), time.Now()
	for name, test := range map[string]struct {
		lease Lease
		want  bool
	}{
		"running":             {Lease{Holder: a, ReadAt: now, ValidFor: time.Hour}, true},
		"another's":           {Lease{Holder: uuid.New(), ReadAt: now, ValidFor: time.Hour}, false},
		"vacant":              {Lease{ReadAt: now}, false},
		"expired":             {Lease{Holder: a, ReadAt: now.Add(-2 * time.Hour), ValidFor: time.Hour}, false},
		"expired by the wall": {Lease{Holder: a, ReadAt: now.Round(0).Add(-2 * time.Hour), ValidFor: time.Hour}, false},
		"expired on arrival":  {Lease{Holder: a, ReadAt: now}, false},
	} {
		if got := test.lease.HeldBy(a); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Lease{ReadAt: now, ValidFor: time.Hour}).HeldBy(uuid.Nil) {
		t.Error("the nil UUID holds a lease without a holder; want no holder")
	}
}
