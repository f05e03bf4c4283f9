// How the engine works. Read this before you change it. A Node has at most one live
// session. An Election is the node's candidacy for one role, a Term one uninterrupted
// leadership. All elections of a node share its session, so the cost at rest does not
// grow with their number.
//
// # Goroutines
//
// Each one belongs to the node: Close waits for it through Node.group.
//
//	Node.run        opens the first session's successors, one after the other
//	session.serve   is the only caller of the Session's methods, apart from Abort:
//	                one call at a time, without deadlines, chosen by session.nextJob
//	closeWhenIdle   closes the connection of a session that has ended
//	deliver         calls an election's callbacks, while events are queued
//	takeOverRoles   asks less preferred leaders to hand over; only with TakeOverAfter
//
// User code runs on other goroutines and delays nothing else: Work (in the caller of Run),
// Config.Load, the retry strategies of elections, and the function of OnDrain. An
// exception is the strategy for reconnecting, which runs in Node.run. internal/logqueue
// writes the log; Close waits at most 2 s for it. Timers of the node's Clock end trust,
// the reconnect grace and StopTimeout.
//
// # States
//
// An election follows the table in internal/fsm. stepLocked feeds it and performs the
// returned actions:
//
//	Stopped → Follower ⇄ Acquiring → Leader → Releasing → Follower or Stopped
//	Leader → Reconnecting → Leader, Follower or Stopped    (with a reconnect grace)
//	Leader → Follower or Stopped                           (without one)
//
// The state decides what an election does next. Term.Valid alone decides whether it leads,
// from atomics and two clocks: trust ends before the state follows. The life of a session
// has four steps: it is opened, proved by a first heartbeat (startLocked), over
// (endLocked), and closed.
//
// # Steps
//
// The models in lab/model, internal/steps and the guarantees page name the steps of a node
// alike. It opens a session, sends a heartbeat, gets the answer of a heartbeat, tries the
// role, leads, ends its term; the work returns; then the node releases the role. Or it
// gives up its session and, after the work, closes its connection.
//
// # Locks
//
// Node.mu guards all bookkeeping of the node, its session, elections and terms. A method
// with the suffix Locked must be called with it held. Node.mu may be held when one of the
// following is locked, never the other way around: Term.work, Election.events,
// Node.callbackDelays, trust.mu, loadSampler.mu, the log queue's. No logger's handler,
// callback, retry strategy, load function or I/O runs under Node.mu; a Clock does, and
// therefore must not block. Events posted under Node.mu are delivered after it is
// unlocked. trust.end needs no Node.mu: contexts are canceled in time even if something
// keeps the mutex. Waiting callers hold no mutex: Election.waitFor checks again after each
// change.
//
// # Shutdowns
//
// However a term ends, the order is: trust ends, its context is canceled, the work
// returns, the lock is released, other nodes are notified. Term.advanceLocked takes
// each step when the one before is done.
//
//   - A term is given up (StepDown, HandOver, Resign, a request, a drain, Shutdown):
//     stopLocked closes Stopping and refuses new guards. Guards, and work using Stopping,
//     have StopTimeout before trust ends. serve then sends the release.
//   - A session ends (an error, a missed deadline, force): trust.end, without Node.mu;
//     then endLocked: its terms end, queued releases fail (their locks go with the
//     session), the elections step, waiting calls fail. Node.run opens the next session
//     immediately. A working connection stays open until the work under it has returned,
//     because its end releases the locks.
//   - An election stops (Shutdown, the end of a context, Done): its term is given up;
//     a lock without a term is unlocked; on_stopped comes last.
//   - A node closes: every election stops and is waited for; serve leaves with
//     Session.Close; every goroutine ends; the log is flushed. If Close's context ends
//     first, abandonWork is closed and the connection is cut under running work.
//
// # Invariants
//
//   - Trust counts from before a heartbeat is sent and is never revived (Invariant 1).
//   - A lock is released after the work has returned (Invariant 4), and an election does
//     not campaign while the work of its last term runs or its lock is being unlocked.
//   - A session does not ask for a role it holds (Invariant 5).
//   - No deadline closes the connection of a session that may hold a lock. A session sends
//     nothing after its trust has ended. Both would move the server's own deadline.
//   - A heartbeat follows the begin of a term if a crash of the database could undo its
//     record.
//   - A node holds, asks for or works for at most GroupLimit roles of a group: dueLocked
//     admits no other election while usesRoomLocked is true for so many.
//   - A role is retried immediately after a notification, otherwise every CheckInterval or
//     as the retry strategy says (Invariant 7).

package tenure
