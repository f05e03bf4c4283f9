// Package lease elects leaders with leases in the tables of an SQL database: on
// SQLite for the processes of one machine, on MySQL and MariaDB, and on PostgreSQL
// if nodes can connect only through a pooler in transaction mode. If nodes can
// connect to PostgreSQL directly, use package postgres: there a standby takes over
// from a crashed leader in milliseconds instead of one lease.
//
// A tenure.Node runs on a [Backend]. Package lease/store is the level below: its single
// calls elect one leader for each namespace, also in the caller's transactions.
//
// The package contains no driver: it takes a *sql.DB and the [Dialect] of its database.
// All times are by the database's clock.
package lease
