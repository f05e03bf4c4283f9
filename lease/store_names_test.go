package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

func TestStoreConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dialect Dialect
		config  StoreConfig
		want    string // part of the message; empty if it is good
	}{
		"defaults":                 {PostgreSQL, StoreConfig{}, ""},
		"shortest window":          {SQLite, StoreConfig{Window: time.Millisecond}, ""},
		"window too short":         {SQLite, StoreConfig{Window: time.Millisecond - 1}, "the least is 1ms"},
		"negative window":          {SQLite, StoreConfig{Window: -time.Second}, "the least is 1ms"},
		"longest prefix":           {MySQL, StoreConfig{Prefix: strings.Repeat("p", 40)}, ""},
		"prefix too long":          {MySQL, StoreConfig{Prefix: strings.Repeat("p", 41)}, "at most 40"},
		"prefix with another case": {MySQL, StoreConfig{Prefix: "App_"}, "lower-case"},
		"prefix with a schema":     {PostgreSQL, StoreConfig{Prefix: "app."}, "lower-case"},
		"prefix with a quote":      {SQLite, StoreConfig{Prefix: `a"`}, "lower-case"},
		"no dialect":               {0, StoreConfig{}, "no SQL dialect 0"},
		"unknown dialect":          {9, StoreConfig{}, "no SQL dialect 9"},
	} {
		store, err := NewStore(nil, test.dialect, test.config)
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
	if c := (StoreConfig{}).withDefaults(); c.Window != time.Minute || c.Prefix != "gemstone_" || c.Logger == nil {
		t.Errorf("the defaults are %+v", c)
	}
}

func TestCheckedNamespace(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"default", "a", " a ", strings.Repeat("é", 255)} {
		if got, err := checkedNamespace(namespace); err != nil || got != namespace {
			t.Errorf("%q: %q, %v", namespace, got, err)
		}
	}
	if got, err := checkedNamespace(""); err != nil || got != "default" {
		t.Errorf("the empty namespace is %q, %v", got, err)
	}
	for namespace, want := range map[string]string{
		strings.Repeat("é", 256): "256 characters", "a\x00": "control", "a\u0085": "control", "\xc3": "UTF-8",
	} {
		if _, err := checkedNamespace(namespace); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want ErrInvalidConfig with %q", namespace, err, want)
		}
	}
	if _, err := checked("a", uuid.Nil); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("the nil UUID: %v", err)
	}
}

func TestParseID(t *testing.T) {
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

func TestSeatHolds(t *testing.T) {
	t.Parallel()
	a, now := uuid.New(), time.Now()
	for name, test := range map[string]struct {
		seat Seat
		want bool
	}{
		"running":              {Seat{Leader: a, ReadAt: now, ValidFor: time.Hour}, true},
		"another's":            {Seat{Leader: uuid.New(), ReadAt: now, ValidFor: time.Hour}, false},
		"vacant":               {Seat{ReadAt: now}, false},
		"over":                 {Seat{Leader: a, ReadAt: now.Add(-2 * time.Hour), ValidFor: time.Hour}, false},
		"over by the wall":     {Seat{Leader: a, ReadAt: now.Round(0).Add(-2 * time.Hour), ValidFor: time.Hour}, false},
		"over when it arrived": {Seat{Leader: a, ReadAt: now}, false},
	} {
		if got := test.seat.Holds(a); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Seat{ReadAt: now, ValidFor: time.Hour}).Holds(uuid.Nil) {
		t.Error("nobody holds a vacant seat")
	}
}
