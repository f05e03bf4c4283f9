package sim

import (
	"testing"
	"time"
)

// A term that begins and ends between two checks counts, if it is the role's last one: a
// candidate that tried the role during it tries again after its check interval.
func TestShortTermIsNoVacancy(t *testing.T) {
	for name, test := range map[string]struct {
		row  *roleRow
		want bool
	}{
		"the last term":     {&roleRow{term: 7}, true},
		"an earlier term":   {&roleRow{term: 8}, false},
		"a term that ended": {&roleRow{term: 7, ended: true}, false},
		"no row":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &World{server: &server{roles: map[string]*roleRow{"r": test.row}}, led: map[string]time.Duration{}}
			w.recordLed("r", 7)
			if _, led := w.led["r"]; led != test.want {
				t.Errorf("led: %t, want %t", led, test.want)
			}
		})
	}
}
