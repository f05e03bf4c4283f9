// Package cron runs schedules on exactly one node: each tick is claimed once,
// across crashes and failovers, by the leader of a role.
package cron
