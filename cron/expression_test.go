package cron

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

func TestParseRejectsInvalidExpressions(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"":                          "number of fields is 0",
		"* * * *":                   "number of fields is 4",
		"* * * * * * *":             "number of fields is 7",
		"60 * * * *":                "60",
		"* 24 * * *":                "24",
		"x * * * *":                 "x",
		"@every":                    "@every",
		"@every soon":               `"soon" is not a duration`,
		"@every 999ms":              "it must be at least 1s",
		"@every -1h":                "it must be at least 1s",
		"@fortnightly":              "@fortnightly",
		"TZ=UTC * * * * *":          "separately from the expression",
		"CRON_TZ=UTC * * * * *":     "separately from the expression",
		"0 0 30 2 *":                "it never ticks",
		"0 0 31 2,4,6,9,11 *":       "it never ticks",
		"@reboot":                   "@reboot",
		"0 0 L-0 * *":               `"L-0" is not a day of the month: L- needs a number of days from 1 to 30`,
		"0 0 L-31 * *":              "from 1 to 30",
		"0 0 L-3W * *":              "from 1 to 30",
		"0 0 LL * *":                "L stands alone",
		"0 0 3L * *":                "L stands alone",
		"0 0 1-L * *":               "L stands alone",
		"0 0 0W * *":                "W needs one day from 1 to 31 before it, as in 15W",
		"0 0 32W * *":               "from 1 to 31",
		"0 0 W * *":                 "from 1 to 31",
		"0 0 1-15W * *":             "W needs one day",
		"0 0 15W/2 * *":             "15W/2",
		"0 0 5#2 * *":               "# belongs to the day of the week",
		"0 0 * * L":                 "L needs one day before it, as in FRIL",
		"0 0 * * 8L":                "L needs one day",
		"0 0 * * mon-friL":          "L needs one day",
		"0 0 * * FRI#0":             "a number from 1 to 5 after it",
		"0 0 * * FRI#6":             "a number from 1 to 5",
		"0 0 * * #2":                "# needs one day before it",
		"0 0 * * FRI#":              "a number from 1 to 5",
		"0 0 * * 8#1":               "# needs one day",
		"0 0 * * mon-fri#2":         "# needs one day",
		"0 0 * * 15W":               "W belongs to the day of the month",
		"0 0 * L *":                 `"L" is allowed only as a day`,
		"5#2 0 * * *":               "is allowed only as a day",
		"0 15W * * *":               "is allowed only as a day",
		"0 0 31W 2 *":               "it never ticks",
		"0 0 L-29 2 *":              "it never ticks",
		"0 0 * 2 ,":                 "",
		strings.Repeat("1,", 9_000): "",
		"0 0 1 1 * 2027":            "is a year",
		"0 0 1 1 * 2027-2030":       "is a year",
	} {
		_, err := Parse(text, time.UTC)
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.40q: %v; want an error with %q", text, err, reason)
		}
	}
}

func TestRareExpressionsHaveTicks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0 0 29 2 *": "2096-02-29T00:00:00Z", // 2100 is no leap year
		"0 0 31 * 7": "2096-01-01T00:00:00Z", // either of the days: the first is a Sunday
	} {
		e, err := Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Next(at(t, "2095-12-31T23:00:00Z")).Format(time.RFC3339); got != want {
			t.Errorf("%s ticks at %s; want %s", text, got, want)
		}
	}
	e, err := Parse("0 0 29 2 *", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Next(at(t, "2096-03-01T00:00:00Z")).Format(time.RFC3339); got != "2104-02-29T00:00:00Z" {
		t.Errorf("February 29 after 2096 is %s", got)
	}
}

func TestLoadZoneRejectsUnknownNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Mars/Olympus", "Local", "../etc/passwd", "europe berlin"} {
		if _, err := LoadZone(name); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if zone, err := LoadZone(""); err != nil || zone != time.UTC {
		t.Errorf("the zone without a name is %v, %v", zone, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"* * * * *", "*/5 0-3,7 1 jan mon-fri", "30 0 2 29 2 0", "@every 1h30m", "@weekly", "0 0 ? * 7", "0 0 L * *", "0 9 L-3,15W,LW,7 * *", "0 9 * feb 5L,FRI#2,mon", "0 0 lw 2 sun#5", "H * * * *", "TZ=UTC 1 2 3 4 5",
	} {
		f.Add(text, int64(1_772_000_000))
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		e, err := Parse(text, newYork)
		if err != nil {
			if !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Fatal(err)
			}
			return
		}
		from := time.Unix(seconds%4_000_000_000, 0)
		next := e.Next(from)
		if !next.After(from) {
			t.Fatalf("%q ticks at %v, not after %v", text, next, from)
		}
		again, err := Parse(e.String(), newYork)
		if err != nil || !again.Next(from).Equal(next) {
			t.Fatalf("%q read again: %v", e.String(), err)
		}
	})
}
