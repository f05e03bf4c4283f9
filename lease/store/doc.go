// Package store elects one leader for each namespace by leases in two tables of an
// SQL database, with calls that can join the caller's transactions. It is the level
// below package lease, which gives a tenure.Node a backend on the same databases.
//
// Package store contains no driver: it takes a *sql.DB and the lease.Dialect of its
// database. All times are those of the database's clock.
package store
