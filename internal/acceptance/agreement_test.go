package acceptance_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

// agreement collects how far records and an observer are apart.
type agreement struct {
	fault string

	mu    sync.Mutex
	kinds []string // in the order of their first figures
	apart map[string][]difference
}

// difference is a recorded duration beside the observed one.
type difference struct {
	recorded time.Duration
	observed span
	waited   waits
}

// off is how far the record is from all that the observer allows.
func (d difference) off() time.Duration { return d.observed.off(d.recorded).Abs() }

// apart is how far the record is from the middle of what the observer allows.
func (d difference) apart() time.Duration { return (d.recorded - d.observed.middle()).Abs() }

func newAgreement(fault string) *agreement {
	return &agreement{fault: fault, apart: map[string][]difference{}}
}

// compare compares a recorded duration with an observed one. A vacancy is recorded from
// when a node noticed that the lock was free, so that the delays of the machine add to the
// difference.
func (a *agreement) compare(t *testing.T, kind string, seen span, recorded time.Duration, waited waits) {
	t.Helper()
	d := difference{recorded, seen, waited}
	a.mu.Lock()
	if _, found := a.apart[kind]; !found {
		a.kinds = append(a.kinds, kind)
	}
	a.apart[kind] = append(a.apart[kind], d)
	a.mu.Unlock()
	if off := d.off(); off > agreed {
		text := fmt.Sprintf("%s of %v is recorded, %v from what the observer saw: %v; %v", kind, recorded, seen.off(recorded), seen, waited)
		if off > agreed+waited.observer+waited.server+waited.node {
			t.Error(text)
		} else {
			t.Log("excused: " + text)
		}
	}
}

// report logs the distributions.
func (a *agreement) report(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, kind := range a.kinds {
		all := a.apart[kind]
		excused := 0
		for _, d := range all {
			if d.off() > agreed {
				excused++
			}
		}
		t.Logf("%s: %d recorded; from the middle of the observation %s; beyond its bounds %s; between its bounds %s; the observer waited for a processor %s; beyond by more than %v: %d",
			kind, len(all), quantiles(all, difference.apart), quantiles(all, difference.off),
			quantiles(all, func(d difference) time.Duration { return d.observed.most - d.observed.least }),
			quantiles(all, func(d difference) time.Duration { return d.waited.observer }), agreed, excused)
	}
}

// quantiles describes a distribution.
func quantiles(all []difference, of func(difference) time.Duration) string {
	var values []time.Duration
	for _, d := range all {
		values = append(values, of(d))
	}
	slices.Sort(values)
	at := func(part float64) time.Duration {
		return values[int(part*float64(len(values)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, max %v", at(0.5), at(0.99), at(1))
}

// observedPage is the page that a run writes its figures to, if it is set.
var observedPage = os.Getenv("TENURE_TEST_OBSERVED_PAGE")

// publish writes the figures of all kinds of faults to the page.
func publish(t *testing.T, all []*agreement) {
	t.Helper()
	if observedPage == "" || t.Failed() {
		return
	}
	lines := []string{"| fault | recorded | number | p50 of the difference | p99 | most |", "|---|---|---|---|---|---|"}
	for _, a := range all {
		for _, kind := range a.kinds {
			lines = append(lines, fmt.Sprintf("| %s | %s | %d | %s |", a.fault, kind, len(a.apart[kind]),
				strings.NewReplacer("p50 ", "", ", p99 ", " | ", ", max ", " | ").Replace(quantiles(a.apart[kind], difference.apart))))
		}
	}
	lines = append(lines, "", "Last run: "+time.Now().UTC().Format(time.DateOnly)+".")
	if err := docpage.Update(observedPage, "test-observer", func(string) string { return strings.Join(lines, "\n") }); err != nil {
		t.Error(err)
	}
}
