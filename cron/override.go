package cron

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Override has the operators' settings of a schedule at run time, in place of its
// program's declaration. It lasts until [Admin.Reset], across terms and new versions of
// the program. Zero fields are as the program declares them. The job and its policy always
// come from the program.
type Override struct {
	// Job is the program's schedule with the job and the settings, if an operator has
	// added this schedule.
	Job string `json:"job,omitempty"`

	Expression   string   `json:"expression,omitempty"`
	Zone         string   `json:"timezone,omitempty"`
	CatchUp      CatchUp  `json:"catch_up,omitempty"`
	CatchUpLimit int      `json:"catch_up_limit,omitempty"`
	Overlap      Overlap  `json:"overlap,omitempty"`
	Jitter       *Seconds `json:"jitter_seconds,omitempty"`
	Timeout      *Seconds `json:"timeout_seconds,omitempty"`
}

// Seconds is a duration, a number of seconds in JSON.
type Seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads a number of seconds.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var number float64
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	if math.Abs(number) > math.MaxInt64/float64(time.Second)/2 {
		return fmt.Errorf("%v seconds are out of range", number)
	}
	*s = Seconds(seconds(number))
	return nil
}

// apply returns a schedule with the settings.
func (o Override) apply(s Schedule) Schedule {
	s.Expression, s.Zone = cmp.Or(o.Expression, s.Expression), cmp.Or(o.Zone, s.Zone)
	s.CatchUp, s.CatchUpLimit = cmp.Or(o.CatchUp, s.CatchUp), cmp.Or(o.CatchUpLimit, s.CatchUpLimit)
	s.Overlap = cmp.Or(o.Overlap, s.Overlap)
	if o.Jitter != nil {
		s.Jitter = time.Duration(*o.Jitter)
	}
	if o.Timeout != nil {
		s.Timeout = time.Duration(*o.Timeout)
	}
	return s
}

// with returns the settings after a further change.
func (o Override) with(later Override) Override {
	return Override{
		Job:        o.Job,
		Expression: cmp.Or(later.Expression, o.Expression), Zone: cmp.Or(later.Zone, o.Zone),
		CatchUp: cmp.Or(later.CatchUp, o.CatchUp), CatchUpLimit: cmp.Or(later.CatchUpLimit, o.CatchUpLimit),
		Overlap: cmp.Or(later.Overlap, o.Overlap),
		Jitter:  cmp.Or(later.Jitter, o.Jitter), Timeout: cmp.Or(later.Timeout, o.Timeout),
	}
}

func (o Override) encode() (string, error) {
	text, err := json.Marshal(o)
	return string(text), err
}

func decodeOverride(text string) (*Override, error) {
	var o Override
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, fmt.Errorf("what operators have set of the schedule: %w", err)
	}
	return &o, nil
}
