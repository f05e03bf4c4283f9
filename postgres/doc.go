// Package postgres runs elections on PostgreSQL 14 and later: a tenure.Backend, and the
// fencing of transactions.
//
// A node has two connections. On the session connection it sends heartbeats and holds
// advisory locks: one for each role that it leads, and one for the node. The server ends
// the session after one lease of silence. On the watch connection the node waits for the
// lock of its predecessor in a ring, and so learns of a death within milliseconds. Neither
// connection may go through a pooler in transaction mode: Open refuses a pooler with
// dberr.ErrPooled.
//
// [InTx] runs a transaction and commits it only while a term is valid. [Fence] and
// [FenceSQL] do the same for the caller's own transactions.
package postgres
