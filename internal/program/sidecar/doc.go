// Package sidecar serves the state of a node over HTTP to the programs beside it: whether
// it is alive, is ready and leads; its elections; the leaders of all roles; and their
// events as a stream. With a token, callers can also hold a guard during a piece of work,
// ask the node to step down, and, where the handler has a pool, change schedules and
// processors.
//
// The pieces: [Listen] binds an address before the node campaigns, [Serve] serves a
// [Handler] on it, and [Handler.Attach] gives the handler its node once the node is open.
// Nothing a client does touches the node's session or delays its heartbeats. The memory,
// connections and database queries of clients are bounded.
package sidecar
