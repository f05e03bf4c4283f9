// Package cron runs schedules on one node at a time: the leader of a role
// claims each tick once, across crashes and failovers.
//
// A [Scheduler] campaigns for the role and, in each term, runs its schedules. Every tick
// becomes a row in the database, inserted by a fenced transaction before the job starts.
// [Admin] reads and changes schedules from any process.
//
// The effects of a job through [Run.InTx] are fenced: they cannot commit after the term
// has ended. Its other effects happen at most once or at least once per tick, as the
// schedule's [Policy] says.
package cron
