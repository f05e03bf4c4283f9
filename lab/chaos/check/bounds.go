package check

import (
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// loadSlack is added to every bound: the machine that runs all nodes, the server and
// the other work beside them can be this late.
const loadSlack = 4 * time.Second

// reconnect is the longest pause between two attempts to open a session: "100 ms to
// 2 s by default".
const reconnect = 2 * time.Second

// bound says how long a role may stay vacant because of a fault. The quotations are
// from "How long a role stays vacant" in docs/explanation/guarantees.md.
type bound struct {
	// blocks: no node can lead while the fault lasts. The bound then counts from its
	// end, and otherwise from its beginning.
	blocks bool
	limit  func(record.Settings) time.Duration
}

// crash: "as soon as the server has noticed the closed socket: milliseconds", and "up
// to one check interval later while the watch connection of the leader's successor is
// down or silent".
func crash(s record.Settings) time.Duration { return s.CheckInterval }

// silence: "lease + margin after its last heartbeat", and up to one check interval
// later for the same reason. A stopped process
// can hold the role's row in a fenced transaction: "its backend is terminated by the
// first attempt after FenceTimeout".
func silence(s record.Settings) time.Duration {
	return s.Lease + s.Margin + s.FenceTimeout + 2*s.CheckInterval
}

// restart: "as soon as every node is back. A node that is not back is waited for …
// no longer than one lease after the server came back".
func restart(s record.Settings) time.Duration { return reconnect + s.Lease + s.CheckInterval }

// thaw: heartbeats that were sent while the server was stopped reach it when it
// continues, so a session that its node has given up counts as silent from then on.
func thaw(s record.Settings) time.Duration { return silence(s) + reconnect }

// rejoin: all nodes open new sessions.
func rejoin(s record.Settings) time.Duration { return reconnect + s.CheckInterval }

// held: "when it ends; its backend is terminated by the first attempt after
// FenceTimeout, counted from when the candidate first saw the row held"; one attempt
// is made in each check interval, and attempts to terminate are a second apart.
func held(s record.Settings) time.Duration { return s.FenceTimeout + 2*s.CheckInterval + time.Second }

// deleted: "its node's row was deleted by an operator, or the node returned more than
// once | at most WatchPeriod + the longer of lease + margin and 15 s after the row was
// gone".
func deleted(s record.Settings) time.Duration {
	return s.WatchPeriod + max(s.Lease+s.Margin, 15*time.Second)
}

// sendBound: "milliseconds after its work has returned", and the work of an outbox is
// one request at most.
func sendBound(s record.Settings) time.Duration { return s.Publish + s.CheckInterval }

// Overload is no fault of the script: the machine was so busy that the server did not
// answer. The promise is for "a reachable database".
const Overload = "overload"

var bounds = map[string]bound{
	"none":               {limit: crash},
	Overload:             {blocks: true, limit: thaw},
	"kill":               {limit: crash},
	"terminate":          {limit: sendBound},
	"stop-short":         {limit: silence},
	"stop-long":          {limit: silence},
	"freeze":             {limit: silence},
	"cut":                {limit: silence},
	"cut-to-server":      {limit: silence},
	"cut-to-node":        {limit: silence},
	"delay":              {limit: silence},
	"reset":              {limit: rejoin},
	"server-kill":        {blocks: true, limit: restart},
	"server-restart":     {blocks: true, limit: restart},
	"server-stop":        {blocks: true, limit: thaw},
	"backend-kill":       {blocks: true, limit: restart},
	"checkpoint":         {limit: crash},
	"disk-full":          {blocks: true, limit: func(s record.Settings) time.Duration { return restart(s) + thaw(s) }},
	"clock-step":         {limit: silence},
	"clock-jump":         {blocks: true, limit: thaw},
	"terminate-sessions": {limit: rejoin},
	"lock-table":         {blocks: true, limit: thaw},
	"read-only":          {blocks: true, limit: thaw},
	"statement-timeout":  {limit: crash},
	"idle-timeout":       {limit: crash},
	"step-down":          {limit: sendBound},
	"drain":              {limit: sendBound},
	"migrate-down":       {limit: crash},
	"delete-node":        {limit: deleted},
	"vacuum-full":        {blocks: true, limit: rejoin},
	"open-transaction":   {limit: held},
	"log-unreadable":     {limit: crash},
	"view-pause":         {limit: crash},
	"view-rebuild":       {limit: crash},
	"poison":             {limit: crash},
	"schedule-pause":     {limit: crash},
	"schedule-trigger":   {limit: crash},
	"receiver-down":      {limit: sendBound},
	"receiver-slow":      {limit: sendBound},
}

// Bounded reports whether a kind of fault has a bound.
func Bounded(kind string) bool {
	_, found := bounds[kind]
	return found
}
