package sim

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// A term that begins and ends between two checks counts: a candidate that tried the role
// during it tries again after its check interval.
func TestShortTermIsNoVacancy(t *testing.T) {
	for name, test := range map[string]struct {
		ended    bool
		reason   tenure.EndReason
		returned time.Duration
		want     time.Duration
	}{
		"released after its work":     {true, history.EndResigned, 15, 20},
		"released without work":       {true, history.EndResigned, 5, 0},
		"ended by another node":       {true, history.EndCrashed, 15, 0},
		"not ended":                   {false, "", 15, 0},
		"work returned after its end": {true, history.EndResigned, 25, 0},
	} {
		t.Run(name, func(t *testing.T) {
			row := &roleRow{acquired: 10, ended: test.ended, endedAt: 20, reason: test.reason}
			v := &vacancies{world: &World{server: &server{roles: map[string]*roleRow{"r": row}}}}
			alive := []*Process{{returned: map[string]time.Duration{}}, {returned: map[string]time.Duration{"r": test.returned}}}
			if got := v.endOfWork("r", alive); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
