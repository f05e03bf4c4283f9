// Package cron runs schedules on exactly one node: each tick is claimed once,
// across crashes and failovers, by the leader of a role.
//
// A [Scheduler] stands for the role and, in each term, runs the schedules that
// were added to it. Every tick becomes a row in the database, inserted in a
// fenced transaction before its job begins. [Admin] looks at schedules and
// changes them, from any process.
//
// What a job does through [Run.InTx] is fenced: nothing of it lands once the
// term is over. Its other effects happen at most once or at least once for each
// tick, as the schedule's [Policy] says.
package cron
