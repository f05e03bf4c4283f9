// Package database turns the connection strings of the program into databases:
// PostgreSQL for sessions, and for leases SQLite, MySQL, MariaDB and PostgreSQL
// behind a pooler. It alone knows the SQL drivers.
package database
