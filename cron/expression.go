package cron

import (
	"fmt"
	"strings"
	"time"

	parser "github.com/netresearch/go-cron"

	"github.com/exactly-one/tenure"
)

// wildcard marks a field of a parsed expression that was given as "*".
const wildcard = 1 << 63

// fieldsParser reads everything but intervals.
var fieldsParser = parser.MustNewParser(parser.SecondOptional | parser.Minute | parser.Hour | parser.Dom | parser.Month |
	parser.Dow | parser.Descriptor)

// shortest is the least time between two ticks of an interval.
const shortest = time.Second

// Expression says when a schedule ticks. The zero value never does; obtain one
// from [Parse]. It is immutable and safe for concurrent use.
type Expression struct {
	text     string
	zone     *time.Location
	interval time.Duration // of "@every"; 0 for fields

	second, minute, hour, day, month, weekday uint64 // bit n: the value n matches
	eitherDay                                 bool
	everyHour                                 bool // the hours follow the instants
}

// Parse reads an expression of five fields (minute, hour, day of the month,
// month, day of the week), of six with seconds first, or a descriptor: @hourly,
// @daily, @weekly, @monthly, @yearly, or @every with a duration of at least a
// second. Names of months and days are understood, and 7 is Sunday. If both the
// day of the month and that of the week are restricted, a day that matches one
// of them matches, as in crontab(5). A nil zone is UTC.
//
// Intervals count from the Unix epoch, so that every node finds the same ticks:
// "@every 15m" ticks at the quarters of the hour in UTC.
//
// An error matches tenure.ErrInvalidConfig; so does an expression that never
// ticks, such as February 30.
func Parse(text string, zone *time.Location) (Expression, error) {
	if zone == nil {
		zone = time.UTC
	}
	e := Expression{text: strings.Join(strings.Fields(text), " "), zone: zone}
	bad := func(format string, args ...any) (Expression, error) {
		return Expression{}, fmt.Errorf("%w: the schedule %q: %s", tenure.ErrInvalidConfig, text, fmt.Sprintf(format, args...))
	}
	if strings.HasPrefix(e.text, "TZ=") || strings.HasPrefix(e.text, "CRON_TZ=") {
		return bad("give the time zone apart from the expression")
	}
	if duration, ok := strings.CutPrefix(e.text, "@every "); ok {
		interval, err := time.ParseDuration(duration)
		switch {
		case err != nil:
			return bad("%q is no duration like 15m or 1h30m", duration)
		case interval < shortest:
			return bad("the interval is %v; the least is %v", interval, shortest)
		}
		e.interval = interval
		return e, nil
	}
	fields := strings.Fields(e.text)
	if n := len(fields); n != 5 && n != 6 && !strings.HasPrefix(e.text, "@") {
		return bad("the number of its fields is %d; give minute, hour, day of the month, month and day of the week, with seconds before them if you like", n)
	}
	parsed, err := fieldsParser.Parse(e.text)
	if err != nil {
		return bad("%v", err)
	}
	spec, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return bad("it is not understood")
	}
	e.second, e.minute, e.hour, e.day, e.month = spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month
	e.weekday = spec.Dow | spec.Dow>>7&1 // 7 is Sunday, too
	e.eitherDay = spec.Dom&wildcard == 0 && spec.Dow&wildcard == 0
	e.everyHour = spec.Hour&wildcard != 0
	if n := len(fields); n >= 5 {
		e.everyHour = strings.HasPrefix(fields[n-4], "*")
	}
	if e.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return bad("it never ticks: no such day exists")
	}
	return e, nil
}

// String returns the text that the expression was parsed from.
func (e Expression) String() string { return e.text }

// Zone returns the time zone that the expression is read in.
func (e Expression) Zone() *time.Location {
	if e.zone == nil {
		return time.UTC
	}
	return e.zone
}
