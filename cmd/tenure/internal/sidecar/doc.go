// Package sidecar serves what a node knows over HTTP, to the programs beside it:
// whether it lives, is ready and leads; its elections; who leads anywhere; and
// their events as a stream. With a token it also lets a caller ask the node to
// step down.
//
// The pieces: [Listen] binds an address before the node takes part, [Serve]
// serves a [Handler] on it, and [Handler.Attach] gives the handler its node once
// that stands. Nothing a client does touches the node's session or delays its
// heartbeats, and the memory, connections and database queries that clients can
// cause are bounded.
package sidecar
