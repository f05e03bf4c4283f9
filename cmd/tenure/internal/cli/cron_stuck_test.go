package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A leader that cannot work is shown by each command that shows schedules, until it works.
func TestLeaderThatCannotWorkIsShown(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	cronNode(t, place.schedules(t, `name = "job"`+"\n"+never+"\n"+`command = "true"`), "api-1").awaitLog("msg=acquired")
	status := func() string {
		if all := place.schedulesOf(t); len(all) == 1 {
			return all[0].Status
		}
		return ""
	}
	eventually(t, "the schedule", func() bool { return status() == "active" })
	if found := examine(t, console.ExitDone, place.with()...); found["schedules"] != doctor.OK.String() {
		t.Errorf("schedules: %s; want ok", found["schedules"])
	}
	i := place.installation(t)
	i.Exec(`CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk of runs is broken'; END $$`)
	i.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON {runs} EXECUTE FUNCTION {schema}.refuse()`)
	place.trigger(t, "job")
	eventually(t, "the status failing", func() bool { return status() == "failing" })
	one := place.schedulesOf(t)[0]
	if one.Errors == 0 || !strings.Contains(one.LastError, "the disk of runs is broken") || time.Time(one.FailingSince).IsZero() {
		t.Errorf("the schedule is %+v; want its errors, the last one and since when", one)
	}
	if found := examine(t, console.ExitDone, place.with()...); found["schedules"] != doctor.Warning.String() {
		t.Errorf("schedules: %s; want warning", found["schedules"])
	}
	if text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "1 schedule has a leader that cannot work: job") {
		t.Errorf("tenure status says %s", text)
	}
	i.Exec(`DROP TRIGGER refuse ON {runs}`)
	eventually(t, "the status active", func() bool { return status() == "active" })
}

// A schedule that waits for a clock that was set back is shown by each command that shows
// schedules.
func TestScheduleThatWaitsForTheClockIsShown(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	place := place{server: server, schema: server.Schema(t)}
	cronNode(t, place.schedules(t, `name = "job"`+"\n"+`schedule = "* * * * * *"`+"\n"+`command = "true"`), "api-1").awaitLog("msg=acquired")
	eventually(t, "a run", func() bool { all := place.schedulesOf(t); return len(all) == 1 && all[0].Last != nil })
	clock.Set(t, -10*time.Minute)
	if one := place.schedulesOf(t)[0]; one.Status != "ahead" || one.AheadSeconds < 500 || time.Time(one.Next).Before(time.Now().Add(-time.Minute)) {
		t.Errorf("the schedule is %+v; want that it waits for about 10 minutes", one)
	}
	if found := examine(t, console.ExitDone, place.with()...); found["schedules"] != doctor.Warning.String() {
		t.Errorf("schedules: %s; want warning", found["schedules"])
	}
	if text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "1 schedule waits for the database's clock: job for 9 min") {
		t.Errorf("tenure status says %s", text)
	}
	for _, command := range []string{"pause", "resume"} {
		invoke(t, place.with("cron", command, "job", "--by", "ann")...).want(t, console.ExitDone)
	}
	eventually(t, "the status active", func() bool { return place.schedulesOf(t)[0].Status == "active" })
}
