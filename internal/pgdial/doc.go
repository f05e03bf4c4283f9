// Package pgdial connects to PostgreSQL as every part of Tenure must: to the
// primary among several hosts even if others hang, directly and not through a
// pooler, and with settings that no role, database or connection string has
// changed.
package pgdial
