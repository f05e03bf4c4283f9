// Package sim runs the real engine against a simulated database, network and
// set of machines, on the fake clock of a testing/synctest bubble, with faults
// drawn from a seed, and checks the invariants of the protocol while it does.
//
// The layers, from the bottom:
//
//   - [World] is the clock, the lock over everything simulated, the transcript
//     and the checker. Every simulated action is an event at its own instant, so
//     that a seed can be replayed.
//   - A path and its links carry messages between a machine and the server, in
//     order and with random latencies; a blocked path keeps them.
//   - The server holds sessions, advisory locks, roles, requests, offers, fenced
//     transactions, as far as the protocol depends on them: an idle timeout that
//     starts when a statement has finished, a FATAL that is sent before the locks
//     are released, locks that are released one by one.
//   - [Machine] has a clock and paths, and runs one [Process] after another: a
//     node with its elections and their work, alone or as a member of a cluster.
//   - [Schedule] draws a configuration and faults from a seed, and [Script] reads
//     them from a text.
//
// A schedule can record what the server receives and answers. A test of package postgres
// repeats that on a real one and compares the answers: see make sim-calls. So the server,
// which is written by hand, cannot drift from the SQL.
//
// How long a role may stay vacant is checked state by state, against what the page on
// guarantees promises: see vacancies. User code (log handlers, callbacks, retry
// strategies, functions for load and description) blocks and panics, leases differ
// among nodes, watch connections stall, and only the reaper ends a stuck session.
//
// Numbered invariants are those of the design: one leader, term numbers increase,
// fenced writes are ordered, work ends first, no stacking, vacancies end. Those from 9
// to 11 are about the nodes of a cluster, and 12 is about the events of a log that
// leaders process; see the constants.
package sim
