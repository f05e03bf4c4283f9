// Package database turns the connection strings of the program into databases: PostgreSQL
// for sessions, and for leases SQLite, MySQL, MariaDB and PostgreSQL behind a pooler. It
// alone knows the SQL drivers.
//
//	postgres://user:password@host:5432/database                     sessions
//	postgres://user:password@host:6432/database?tenure_mode=lease   leases, also behind a pooler
//	host=... dbname=... tenure_mode=lease                           the same, as libpq writes it
//	mysql://user:password@host:3306/database?tls=true               leases; also mariadb://
//	sqlite:relative.db, sqlite:///absolute/path.db                  leases
//
// No error repeats a connection string: it may hold a password.
package database
