package cron

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	parser "github.com/netresearch/go-cron"

	"github.com/exactly-one/tenure"
)

// wildcard marks a field of a parsed expression written as "*".
const wildcard = 1 << 63

// fieldsParser parses everything except intervals.
var fieldsParser = parser.MustNewParser(parser.SecondOptional | parser.Minute | parser.Hour | parser.Dom | parser.Month |
	parser.Dow | parser.Descriptor)

// year matches a field with a year, the last field in some other programs.
var year = regexp.MustCompile(`(^|[,/-])[12][0-9]{3}($|[,/-])`)

// shortest is the minimum interval.
const shortest = time.Second

// Expression says when a schedule ticks. The zero value never ticks; [Parse]
// returns one. It is immutable and safe for concurrent use.
type Expression struct {
	text     string
	zone     *time.Location
	interval time.Duration // of "@every"; 0 if there are fields

	second, minute, hour, day, month, weekday uint64 // bit n: the value n matches
	rules                                     dayRules
	eitherDay                                 bool
	everyHour                                 bool // the hours follow instants, not local times
}

// Parse parses an expression of five fields (minute, hour, day of month, month, day of
// week), of six with seconds first, or a descriptor: @hourly, @daily, @weekly, @monthly,
// @yearly, or @every with a duration of at least one second. Names of months and days are
// allowed, and 7 is Sunday. A field for a year is not. If neither day field begins with *,
// a day matches if it matches either of them; otherwise a day must match both. Both rules
// come from crontab(5): "0 4 */2 * 1" is every second day that is a Monday. A nil zone is
// UTC.
//
// The day of the month can also be L (the last day), L-3 (three days before it), 15W (the
// day from Monday to Friday in the same month nearest to the 15th) or LW (the last day
// from Monday to Friday), and the day of the week FRIL or 5L (the last Friday of the
// month) or FRI#2 or 5#2 (the second one). All are allowed in lists, but not in ranges and
// steps. Months without the day do not tick.
//
// Intervals count from the Unix epoch, and all nodes compute the same ticks: "@every 15m"
// ticks at every quarter of an hour in UTC.
//
// Where clocks change, a fixed hour ticks once for each local time: a missing local time
// ticks at the first instant after the gap, and a repeated one ticks the first time. Hours
// beginning with * follow the instants. In New York, "30 2 * * *" ticks at 3:00 on the day
// without 2:30, and "30 1 * * *" ticks once, before the change, on the day with two 1:30.
//
// An invalid expression, or one that never ticks such as February 30, matches
// tenure.ErrInvalidConfig.
func Parse(text string, zone *time.Location) (Expression, error) {
	if zone == nil {
		zone = time.UTC
	}
	e := Expression{text: strings.Join(strings.Fields(text), " "), zone: zone}
	bad := func(format string, args ...any) (Expression, error) {
		return Expression{}, fmt.Errorf("%w: the schedule %q: %s", tenure.ErrInvalidConfig, text, fmt.Sprintf(format, args...))
	}
	if strings.HasPrefix(e.text, "TZ=") || strings.HasPrefix(e.text, "CRON_TZ=") {
		return bad("set the time zone separately from the expression")
	}
	var err error
	if duration, ok := strings.CutPrefix(e.text, "@every "); ok {
		e.interval, err = parseInterval(duration)
	} else {
		err = e.parseFields()
	}
	if err != nil {
		return bad("%v", err)
	}
	return e, nil
}

// parseInterval parses the time between two ticks.
func parseInterval(duration string) (time.Duration, error) {
	interval, err := time.ParseDuration(duration)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 15m or 1h30m", duration)
	case interval < shortest:
		return 0, fmt.Errorf("the interval is %v; it must be at least %v", interval, shortest)
	}
	return interval, nil
}

// checkCount refuses a wrong number of fields, and a year as the last field.
func (e *Expression) checkCount(fields []string) error {
	switch n := len(fields); {
	case n == 6 && year.MatchString(fields[5]):
		return fmt.Errorf("the last field, %s, is a year; six fields are seconds, minute, hour, day of month, month and day of week", fields[5])
	case n == 5, n == 6, strings.HasPrefix(e.text, "@"):
		return nil
	default:
		return fmt.Errorf("the number of fields is %d; use minute, hour, day of month, month and day of week, optionally with seconds first", n)
	}
}

// parseFields parses an expression of five or six fields, or a name such as @daily.
func (e *Expression) parseFields() error {
	fields := strings.Fields(e.text)
	if err := e.checkCount(fields); err != nil {
		return err
	}
	plain, daysOnly, weekdaysOnly := e.text, false, false
	if len(fields) >= 5 {
		rest, rules, noDays, noWeekdays, err := takeRules(fields)
		if err != nil {
			return err
		}
		e.rules, daysOnly, weekdaysOnly = rules, noDays, noWeekdays
		plain = strings.Join(rest, " ")
	}
	parsed, err := fieldsParser.Parse(plain)
	if err != nil {
		return err
	}
	spec, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return errors.New("it is not a valid cron expression")
	}
	e.second, e.minute, e.hour, e.day, e.month = spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month
	e.weekday = spec.Dow | spec.Dow>>7&1 // 7 is also Sunday
	e.eitherDay = spec.Dom&wildcard == 0 && spec.Dow&wildcard == 0
	if daysOnly {
		e.day = 0
	}
	if weekdaysOnly {
		e.weekday = 0
	}
	e.everyHour = spec.Hour&wildcard != 0
	if n := len(fields); n >= 5 {
		star := func(field int) bool { return strings.HasPrefix(fields[field], "*") }
		e.everyHour = star(n - 4)
		e.eitherDay = e.eitherDay && !star(n-3) && !star(n-1)
	}
	if e.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return errors.New("it never ticks: no such day exists")
	}
	return nil
}

// String returns the parsed text.
func (e Expression) String() string { return e.text }

// Zone returns the time zone of the expression.
func (e Expression) Zone() *time.Location {
	if e.zone == nil {
		return time.UTC
	}
	return e.zone
}
