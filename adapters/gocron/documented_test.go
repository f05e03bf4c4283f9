package gocron_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

func TestLockerSkipsTicksForHalfASecondByDefault(t *testing.T) {
	t.Parallel()
	i := postgrestest.New(t)
	var lockers [2]*tenuregocron.Locker
	for n, name := range []string{"api-1", "api-2"} {
		l, err := tenuregocron.NewLocker(i.Node(name, tenure.Config{}), tenuregocron.LockerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		lockers[n] = l
	}
	began := time.Now()
	lock, err := lockers[0].Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := lockers[1].Lock(t.Context(), "report"); err == nil && time.Since(began) < 400*time.Millisecond {
		t.Errorf("the job ran again %v after it began, want 500ms", time.Since(began))
	}
	// Each attempt counts as a begin. A busy machine also refuses what takes it too long.
	ticks := time.NewTicker(600 * time.Millisecond)
	defer ticks.Stop()
	for n := 1; ; n++ {
		<-ticks.C
		if lock, err = lockers[1].Lock(t.Context(), "report"); err == nil {
			break
		}
		if n == 20 {
			t.Fatalf("no tick runs 600ms after the last one: %v", err)
		}
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
