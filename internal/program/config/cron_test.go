package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/retry"
)

// TestCronTablesBecomeSchedules: the tables of [[cron]] as package cron takes them.
func TestCronTablesBecomeSchedules(t *testing.T) {
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
retries = 3
retry_exit_codes = ["75", "100"]
retry_base = "10s"
retry_max = "5m"
[[cron]]
name = "clean up"
schedule = "@every 15m"
command = "rm -rf /tmp/${WHAT}"
`, variables("WHAT", "it"))
	want := []CommandSchedule{
		{cron.Schedule{
			Name: "backup", Expression: "30 2 * * *", Zone: "Europe/Berlin", CatchUp: cron.CatchUpAll, CatchUpLimit: 7,
			Overlap: cron.OverlapQueue, Policy: cron.AtLeastOnce, Jitter: 30 * time.Second, Timeout: time.Hour,
			Retries: 3, Backoff: retry.ExponentialBackoff{Base: 10 * time.Second, Max: 5 * time.Minute},
		}, []string{"backup", "--full"}, []int{75, 100}},
		{cron.Schedule{Name: "clean up", Expression: "@every 15m"}, []string{"/bin/sh", "-c", "rm -rf /tmp/it"}, nil},
	}
	if got := file.Schedules(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	var no *File
	if got := no.Schedules(); got != nil {
		t.Errorf("without a file: %+v", got)
	}
}
