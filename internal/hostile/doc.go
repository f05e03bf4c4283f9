// Package hostile is a PostgreSQL server that wants to harm its clients, for tests in a
// bubble of testing/synctest.
//
// A [Recording] keeps what a real server answered during one run. A [Server] plays the
// answers back over connections in memory and damages some of them. A seed decides which
// answers, and how: truncated, oversized, of wrong types, without an end, after a flood of
// notices, out of order, or not at all.
//
// The server also knows what its clients may conclude: [Server.MayLead] is an oracle that
// shares no code with them.
package hostile
