package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/retry"
)

// Job is the work of a schedule's run. Its context ends with the term, or when the
// schedule's Timeout has passed; context.Cause returns the reason. A panic counts as a
// failure.
type Job func(ctx context.Context, run Run) error

// CatchUp is the treatment of ticks missed for lack of a leader.
type CatchUp string

// The catch-up settings.
const (
	// CatchUpNone records them as missed.
	CatchUpNone CatchUp = "none"
	// CatchUpLatest runs the last due tick and records the others as missed.
	CatchUpLatest CatchUp = "latest"
	// CatchUpAll runs them in order, one after another unless Overlap is OverlapAllow, up
	// to the schedule's CatchUpLimit; older ones are recorded as missed.
	CatchUpAll CatchUp = "all"
)

// Overlap is the treatment of a tick while an earlier run of the schedule has not ended.
type Overlap string

// The overlap settings.
const (
	// OverlapSkip records the tick as skipped.
	OverlapSkip Overlap = "skip"
	// OverlapQueue lets the tick wait, also across failovers; one runs at a
	// time. If CatchUpLimit runs wait, further ticks are skipped.
	OverlapQueue Overlap = "queue"
	// OverlapAllow runs the tick immediately, in parallel.
	OverlapAllow Overlap = "allow"
)

// Policy is the treatment of a run if its leader died or lost its term before it could
// record the run's end.
type Policy string

// The policies.
const (
	// AtMostOnce abandons the run; this is recorded and logged.
	AtMostOnce Policy = "at_most_once"
	// AtLeastOnce lets the next leader run it again, as another attempt.
	AtLeastOnce Policy = "at_least_once"
)

// Schedule is a job and its times. Name, Expression and Job are required.
type Schedule struct {
	Name       string // unique in the installation
	Expression string // see [Parse]
	Zone       string // a name of the IANA database, such as "Europe/Berlin"; default "UTC"
	Job        Job

	// CatchUp applies to ticks older than the scheduler's Grace. Default CatchUpNone.
	CatchUp CatchUp
	// CatchUpLimit is the maximum number of missed ticks run by CatchUpAll, and of waiting
	// runs under OverlapQueue. Default 100, at most 100,000.
	CatchUpLimit int
	Overlap      Overlap // default OverlapSkip
	Policy       Policy  // default AtMostOnce

	// Jitter delays each tick by a part of this duration. The part is computed from the
	// name and the tick: all nodes agree. At most one day.
	Jitter time.Duration
	// Timeout limits each attempt of a run: its context then ends. Default 0: no
	// limit.
	Timeout time.Duration

	// Retries is the maximum number of retries of a run after errors marked by [Retry]. An
	// attempt interrupted and repeated under AtLeastOnce counts too. Default 0, at most
	// 1000.
	Retries int
	// Backoff returns the delay before a retry, or false if there is none.
	// Failure.Elapsed counts from the claim of the run. Default
	// retry.ExponentialBackoff{}.
	Backoff retry.Strategy
}

// Limits of the settings.
const (
	defaultCatchUp = 100
	maxCatchUp     = 100_000
	maxJitter      = 24 * time.Hour
	maxRetries     = 1000
)

func (s Schedule) withDefaults() Schedule {
	s.Zone = cmp.Or(s.Zone, "UTC")
	s.CatchUp = cmp.Or(s.CatchUp, CatchUpNone)
	s.CatchUpLimit = cmp.Or(s.CatchUpLimit, defaultCatchUp)
	s.Overlap = cmp.Or(s.Overlap, OverlapSkip)
	s.Policy = cmp.Or(s.Policy, AtMostOnce)
	return s
}

// parse validates a schedule after its defaults are set.
func (s Schedule) parse() (timetable, error) {
	if s.Job == nil {
		return timetable{}, invalid("the schedule %s has no job", s.Name)
	}
	return s.parseTimes()
}

// parseTimes is parse for a schedule with its job in another process.
func (s Schedule) parseTimes() (timetable, error) {
	if err := s.check(); err != nil {
		return timetable{}, err
	}
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil {
		return timetable{}, fmt.Errorf("the schedule %s: %w", s.Name, err)
	}
	return timetable{Schedule: s, expression: expression}, nil
}

// check checks all settings but the expression.
func (s Schedule) check() error {
	switch {
	case tenure.NamedRole(s.Name).Validate() != nil:
		return invalid("the schedule's name %q is invalid: it must be 1 to 255 bytes of UTF-8 without control characters", s.Name)
	case !slices.Contains([]CatchUp{CatchUpNone, CatchUpLatest, CatchUpAll}, s.CatchUp):
		return invalid("the catch-up of %s is %q; it must be %q, %q or %q", s.Name, s.CatchUp, CatchUpNone, CatchUpLatest, CatchUpAll)
	case !slices.Contains([]Overlap{OverlapSkip, OverlapQueue, OverlapAllow}, s.Overlap):
		return invalid("the overlap of %s is %q; it must be %q, %q or %q", s.Name, s.Overlap, OverlapSkip, OverlapQueue, OverlapAllow)
	case s.Policy != AtMostOnce && s.Policy != AtLeastOnce:
		return invalid("the policy of %s is %q; it must be %q or %q", s.Name, s.Policy, AtMostOnce, AtLeastOnce)
	case s.CatchUpLimit < 1 || s.CatchUpLimit > maxCatchUp:
		return invalid("the catch-up limit of %s is %d; it must be between 1 and %d", s.Name, s.CatchUpLimit, maxCatchUp)
	case s.Jitter < 0 || s.Jitter > maxJitter:
		return invalid("the jitter of %s is %v; it must be between 0 and %v", s.Name, s.Jitter, maxJitter)
	case s.Timeout < 0 || s.Timeout > timespan.Longest:
		return invalid("the timeout of %s is %v; it must be between 0 and %v", s.Name, s.Timeout, timespan.Longest)
	case s.Retries < 0 || s.Retries > maxRetries:
		return invalid("the number of retries of %s is %d; it must be between 0 and %d", s.Name, s.Retries, maxRetries)
	}
	return nil
}

func parseIn(text, zone string) (Expression, error) {
	location, err := LoadZone(zone)
	if err != nil {
		return Expression{}, err
	}
	return Parse(text, location)
}

// LoadZone returns a time zone of the IANA database, such as "Europe/Berlin"; the empty
// name is UTC. An unknown zone matches tenure.ErrInvalidConfig. The database is the
// system's, or package time/tzdata's if the program imports it.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, invalid("the time zone %q differs between nodes: use a name such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("the time zone %q is unknown here: use a name of the IANA database, such as Europe/Berlin; "+
			"a machine without that database needs the package tzdata", name)
	}
	return zone, nil
}

// invalid returns an error matching tenure.ErrInvalidConfig.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// settings is the part of a schedule stored in its row, as JSON.
type settings struct {
	CatchUp        CatchUp `json:"catch_up"`
	CatchUpLimit   int     `json:"catch_up_limit"`
	Overlap        Overlap `json:"overlap"`
	Policy         Policy  `json:"policy"`
	JitterSeconds  float64 `json:"jitter_seconds"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
	Retries        int     `json:"retries"`
}

func (s Schedule) settings() settings {
	return settings{s.CatchUp, s.CatchUpLimit, s.Overlap, s.Policy, s.Jitter.Seconds(), s.Timeout.Seconds(), s.Retries}
}

func (s Schedule) encodeSettings() (string, error) {
	text, err := json.Marshal(s.settings())
	return string(text), err
}

func (s *Schedule) decodeSettings(text string) error {
	var from settings
	if err := json.Unmarshal([]byte(text), &from); err != nil {
		return fmt.Errorf("the settings of the schedule %s: %w", s.Name, err)
	}
	s.CatchUp, s.CatchUpLimit, s.Overlap, s.Policy = from.CatchUp, from.CatchUpLimit, from.Overlap, from.Policy
	s.Jitter, s.Timeout, s.Retries = seconds(from.JitterSeconds), seconds(from.TimeoutSeconds), from.Retries
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
