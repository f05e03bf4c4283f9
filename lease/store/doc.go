// Package store elects one leader for each namespace by leases in two tables of an SQL
// database, also in the caller's transactions. It is the level below package lease, with a
// backend for tenure.Node on the same databases.
//
// Package store contains no driver: it takes a *sql.DB and the lease.Dialect of its
// database. All times are by the database's clock.
package store
