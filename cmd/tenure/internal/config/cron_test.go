package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cron"
)

// TestSchedules: the tables of [[cron]] as package cron takes them.
func TestSchedules(t *testing.T) {
	t.Parallel()
	file := mustParse(t, `
[[cron]]
name = "backup"
schedule = "30 2 * * *"
command = ["backup", "--full"]
timezone = "Europe/Berlin"
catch_up = "all"
catch_up_limit = 7
overlap = "queue"
policy = "at-least-once"
jitter = "30s"
timeout = "1h"
[[cron]]
name = "clean up"
schedule = "@every 15m"
command = "rm -rf /tmp/${WHAT}"
`, variables("WHAT", "it"))
	want := []CommandSchedule{
		{cron.Schedule{
			Name: "backup", Expression: "30 2 * * *", Zone: "Europe/Berlin", CatchUp: cron.CatchUpAll, CatchUpLimit: 7,
			Overlap: cron.OverlapQueue, Policy: cron.AtLeastOnce, Jitter: 30 * time.Second, Timeout: time.Hour,
		}, []string{"backup", "--full"}},
		{cron.Schedule{Name: "clean up", Expression: "@every 15m"}, []string{"/bin/sh", "-c", "rm -rf /tmp/it"}},
	}
	if got := file.Schedules(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	var no *File
	if got := no.Schedules(); got != nil {
		t.Errorf("without a file: %+v", got)
	}
}
