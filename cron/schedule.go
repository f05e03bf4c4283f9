package cron

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// Job is what a schedule runs. Its context ends with the term, or when the
// schedule's Timeout is over; context.Cause says why. A panic counts as a
// failure.
type Job func(ctx context.Context, run Run) error

// CatchUp says what becomes of ticks that were missed because nobody led.
type CatchUp string

// The ways to catch up.
const (
	// CatchUpNone records them as missed.
	CatchUpNone CatchUp = "none"
	// CatchUpLatest runs the last of all ticks that are due, and records the others as
	// missed.
	CatchUpLatest CatchUp = "latest"
	// CatchUpAll runs them one after the other, in order, up to the schedule's
	// CatchUpLimit; older ones are recorded as missed.
	CatchUpAll CatchUp = "all"
)

// Overlap says what becomes of a tick while an earlier run of the schedule has
// not ended.
type Overlap string

// The ways to treat overlaps.
const (
	// OverlapSkip records the tick as skipped.
	OverlapSkip Overlap = "skip"
	// OverlapQueue lets it wait, also across failovers; one runs at a time. When
	// CatchUpLimit runs wait, further ticks are skipped.
	OverlapQueue Overlap = "queue"
	// OverlapAllow runs it at once, beside the others.
	OverlapAllow Overlap = "allow"
)

// Policy says what becomes of a run whose leader died, or lost its term, before
// it could record the run's end.
type Policy string

// The policies.
const (
	// AtMostOnce abandons the run, which is recorded and logged.
	AtMostOnce Policy = "at_most_once"
	// AtLeastOnce runs it again, as another attempt, by the next leader.
	AtLeastOnce Policy = "at_least_once"
)

// Schedule is a job and when it runs. Name, Expression and Job must be set.
type Schedule struct {
	Name       string // unique in the installation
	Expression string // as of [Parse]
	Zone       string // of the IANA database, such as "Europe/Berlin"; default "UTC"
	Job        Job

	// CatchUp is None by default. A tick is missed when it is older than the
	// scheduler's Grace.
	CatchUp CatchUp
	// CatchUpLimit is how many missed ticks All runs, and how many runs wait
	// under Queue. Default 100, at most 100,000.
	CatchUpLimit int
	Overlap      Overlap // Skip by default
	Policy       Policy  // AtMostOnce by default

	// Jitter delays each tick by a part of this time that follows from the name
	// and the tick, so that every node finds the same. At most a day.
	Jitter time.Duration
	// Timeout bounds one run: its context ends then. Default 0: none.
	Timeout time.Duration
}

// limits of what a schedule may ask for.
const (
	defaultCatchUp = 100
	mostCatchUp    = 100_000
	mostJitter     = 24 * time.Hour
)

func (s Schedule) withDefaults() Schedule {
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	if s.CatchUp == "" {
		s.CatchUp = CatchUpNone
	}
	if s.CatchUpLimit == 0 {
		s.CatchUpLimit = defaultCatchUp
	}
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if s.Policy == "" {
		s.Policy = AtMostOnce
	}
	return s
}

// parse checks a schedule that has its defaults.
func (s Schedule) parse() (timetable, error) {
	switch {
	case tenure.NamedRole(s.Name).Validate() != nil:
		return timetable{}, invalid("the schedule's name %q cannot be used: 1 to 255 bytes of UTF-8 without control characters", s.Name)
	case s.Job == nil:
		return timetable{}, invalid("the schedule %s has no job", s.Name)
	case s.CatchUp != CatchUpNone && s.CatchUp != CatchUpLatest && s.CatchUp != CatchUpAll:
		return timetable{}, invalid("the catch-up of %s is %q; it must be %q, %q or %q", s.Name, s.CatchUp, CatchUpNone, CatchUpLatest, CatchUpAll)
	case s.Overlap != OverlapSkip && s.Overlap != OverlapQueue && s.Overlap != OverlapAllow:
		return timetable{}, invalid("the overlap of %s is %q; it must be %q, %q or %q", s.Name, s.Overlap, OverlapSkip, OverlapQueue, OverlapAllow)
	case s.Policy != AtMostOnce && s.Policy != AtLeastOnce:
		return timetable{}, invalid("the policy of %s is %q; it must be %q or %q", s.Name, s.Policy, AtMostOnce, AtLeastOnce)
	case s.CatchUpLimit < 1 || s.CatchUpLimit > mostCatchUp:
		return timetable{}, invalid("the catch-up limit of %s is %d; it must be between 1 and %d", s.Name, s.CatchUpLimit, mostCatchUp)
	case s.Jitter < 0 || s.Jitter > mostJitter:
		return timetable{}, invalid("the jitter of %s is %v; it must be between 0 and %v", s.Name, s.Jitter, mostJitter)
	case s.Timeout < 0:
		return timetable{}, invalid("the timeout of %s is %v; the least is 0, which is none", s.Name, s.Timeout)
	}
	expression, err := parseIn(s.Expression, s.Zone)
	if err != nil {
		return timetable{}, fmt.Errorf("the schedule %s: %w", s.Name, err)
	}
	return timetable{s, expression}, nil
}

func parseIn(text, zone string) (Expression, error) {
	location, err := LoadZone(zone)
	if err != nil {
		return Expression{}, err
	}
	return Parse(text, location)
}

// LoadZone returns a time zone of the IANA database, such as "Europe/Berlin";
// the empty name is UTC. An error matches tenure.ErrInvalidConfig. The database
// is the system's, or that of the package time/tzdata if the program imports it.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, invalid("the time zone %q differs from node to node: name it, as in Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("the time zone %q is unknown here: give a name of the IANA database, such as Europe/Berlin; "+
			"a machine without that database needs the package tzdata", name)
	}
	return zone, nil
}

// invalid reports something that cannot be used.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// settings are the part of a schedule that its row keeps as JSON, for people.
type settings struct {
	CatchUp        CatchUp `json:"catch_up"`
	CatchUpLimit   int     `json:"catch_up_limit"`
	Overlap        Overlap `json:"overlap"`
	Policy         Policy  `json:"policy"`
	JitterSeconds  float64 `json:"jitter_seconds"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
}

func (s Schedule) settings() settings {
	return settings{s.CatchUp, s.CatchUpLimit, s.Overlap, s.Policy, s.Jitter.Seconds(), s.Timeout.Seconds()}
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
	s.Jitter, s.Timeout = seconds(from.JitterSeconds), seconds(from.TimeoutSeconds)
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
