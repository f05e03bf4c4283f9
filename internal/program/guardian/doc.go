// Package guardian runs a command that must not outlive a term.
//
// The leading process, the supervisor, calls [Run] and so starts a second process, the
// guardian. The guardian is the same program running [Main]. It is the command's parent
// and, on Linux, the subreaper of all its descendants: whatever process groups and
// sessions they create, they stay below the guardian. When the guardian has no child left,
// none of them is running. It kills all of them
//
//   - shortly before trust in the term ends, by its own timers on a clock that continues
//     while processes are stopped or the machine is suspended;
//   - when the supervisor orders it;
//   - when the supervisor has exited, which ends their connection.
//
// The guardian holds a duplicate of the descriptor of the database connection with the
// term's lock. If the supervisor dies, the server therefore keeps the lock until the
// guardian, and thus every descendant, has ended.
//
// If the guardian dies or is stopped, the supervisor kills the descendants: it is also a
// subreaper and has the same deadlines.
//
// Systems other than Linux have no subreapers. There the guardian kills the command's
// process group, and a descendant that leaves the group escapes.
package guardian
