// Package lease elects leaders by rows of an SQL database: on SQLite, for the
// processes of one machine, on MySQL and MariaDB, and on PostgreSQL where only a
// pooler in transaction mode is reachable. Where sessions of PostgreSQL are to
// be had, package postgres replaces a dead leader in milliseconds instead of one
// lease.
//
// [Backend] gives a tenure.Node all that it has on PostgreSQL. [Store] is the
// level below: candidates and one leader for each namespace, as calls that can
// take part in transactions of the caller.
//
// The package brings no driver: it takes a *sql.DB and the [Dialect] of its
// database. All times are those of the database's clock.
package lease
