// Package guardian runs a command that must not outlive a term.
//
// The process that leads, the supervisor, calls [Run]. That starts a second
// process, the guardian, which is the same program and ends up in [Main]. The
// guardian is the command's parent and, on Linux, the subreaper of all its
// descendants: whatever they do with groups and sessions, each stays below it,
// and when it has no child left, none of them lives. It kills them all
//
//   - shortly before the trust in the term ends, by timers of its own on a clock
//     that goes on while processes are stopped or the machine is suspended;
//   - when the supervisor says so;
//   - when the supervisor is gone, which the end of their connection tells.
//
// It holds a duplicate of the descriptor of the database connection that keeps
// the term's lock. If the supervisor dies, the server therefore keeps the lock
// until the guardian, and so every descendant, has gone.
//
// If the guardian dies or is stopped, the supervisor does the killing: it is a
// subreaper too, and has the same deadlines.
//
// On other systems than Linux there are no subreapers: what is killed is the
// command's process group, and a descendant that leaves the group escapes.
package guardian
