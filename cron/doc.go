// Package cron runs schedules on one node at a time: the leader of a role
// claims each tick once, across crashes and failovers.
//
// A [Scheduler] campaigns for the role and, in each term, runs the schedules
// that were added to it. Every tick becomes a row in the database, which a
// fenced transaction inserts before the job starts. [Admin] reads and changes
// schedules from any process.
//
// What a job does through [Run.InTx] is fenced: it cannot commit after the term
// has ended. Its other effects happen at most once or at least once per tick,
// as the schedule's [Policy] says.
package cron
