package cron

import (
	"sync"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/config"
)

// liveSchedules holds the schedules of the file as last read. It is safe for
// concurrent use; the file can be reread before there is a scheduler.
type liveSchedules struct {
	commands *scheduledCommands

	mu        sync.Mutex
	current   []cron.Schedule
	scheduler *cron.Scheduler // nil before there is one
}

// set replaces the schedules. If one is invalid, nothing changes.
func (l *liveSchedules) set(tables []config.CommandSchedule) error {
	schedules, err := l.commands.schedules(tables)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scheduler != nil {
		if err := l.scheduler.Replace(schedules...); err != nil {
			return err
		}
	}
	l.current = schedules
	return nil
}

// attach passes the schedules to a node's scheduler, now and after every
// change.
func (l *liveSchedules) attach(scheduler *cron.Scheduler, node *tenure.Node) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands.node, l.scheduler = node, scheduler
	return scheduler.Replace(l.current...)
}
