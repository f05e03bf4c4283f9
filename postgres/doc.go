// Package postgres runs elections on PostgreSQL 14 and later: it is the
// tenure.Backend that talks to the database, and the fencing of transactions.
//
// A node has two connections. On its session it holds advisory locks, one for
// each role it leads and one for itself, and sends a heartbeat; the server ends
// the session when it has been silent for one lease. On its watch connection it
// waits for the lock of the node before it in a ring, and so learns of a death
// within milliseconds. Neither may go through a pooler in transaction mode; such
// a connection is refused with dberr.ErrPooled.
//
// [InTx] runs a transaction that commits only while a term stands. [Fence] and
// [FenceSQL] do the same for transactions that are managed otherwise.
package postgres
