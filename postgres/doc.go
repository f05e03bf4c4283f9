// Package postgres runs elections on PostgreSQL 14 and later: it is the
// tenure.Backend that talks to the database, and the fencing of transactions.
//
// A node has two connections. On the session connection it holds advisory locks,
// one for each role that it leads and one for itself, and sends heartbeats. The
// server ends the session when it has been silent for one lease. On the watch
// connection the node waits for the lock of its predecessor in a ring, and so
// learns of a death within milliseconds. Neither connection may go through a
// pooler in transaction mode: Open refuses that with dberr.ErrPooled.
//
// [InTx] runs a transaction that commits only while a term is valid. [Fence] and
// [FenceSQL] do the same for transactions that the caller manages.
package postgres
