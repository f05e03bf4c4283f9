package cron

import (
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Well-known parsers differ on these days, and some tick twice.
func TestNextTicksOnceAcrossClockChanges(t *testing.T) {
	t.Parallel()
	const spring, autumn = "2026-03-08T00:00:00-05:00", "2026-11-01T00:00:00-04:00"
	for _, test := range []struct {
		name, expression, zone, from string
		want                         []string
	}{
		{"a time that does not exist ticks after the gap", "30 2 * * *", "America/New_York", "2026-03-07T00:00:00-05:00",
			[]string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"a time that exists twice ticks in the first", "30 1 * * *", "America/New_York", "2026-10-31T00:00:00-04:00",
			[]string{"2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"asked within the second hour, it does not tick again", "30 1 * * *", "America/New_York", "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-02T01:30:00-05:00"}},
		{"several in the gap are one tick", "*/15 2 * * *", "America/New_York", spring,
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00", "2026-03-09T02:15:00-04:00"}},
		{"one in the gap and one after it are one tick", "0 2,3 * * *", "America/New_York", spring,
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00", "2026-03-09T03:00:00-04:00"}},
		{"hours by wildcard follow the instants forward", "30 * * * *", "America/New_York", "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"}},
		{"hours by wildcard follow the instants back", "30 * * * *", "America/New_York", "2026-11-01T00:45:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"}},
		{"hours by steps follow the instants", "0 */2 * * *", "America/New_York", spring,
			[]string{"2026-03-08T04:00:00-04:00", "2026-03-08T06:00:00-04:00"}},
		{"a range of hours is fixed", "0 0-3 * * *", "America/New_York", autumn,
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00", "2026-11-01T03:00:00-05:00"}},
		{"seconds", "*/30 59 1 * * *", "America/New_York", spring,
			[]string{"2026-03-08T01:59:00-05:00", "2026-03-08T01:59:30-05:00", "2026-03-09T01:59:00-04:00"}},
		{"half an hour is set", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"half an hour exists twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-05T00:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"midnight does not exist", "@daily", "Africa/Cairo", "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
		{"a whole day does not exist", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, err := Parse(test.expression, zone(t, test.zone))
			if err != nil {
				t.Fatal(err)
			}
			next := at(t, test.from)
			for _, want := range test.want {
				if next = e.Next(next); next.Format(time.RFC3339) != want {
					t.Fatalf("ticks at %s; want %s", next.Format(time.RFC3339), want)
				}
			}
		})
	}
}
