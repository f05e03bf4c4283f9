// Package pgdial connects to PostgreSQL as every part of Tenure must:
//
//   - to the primary among several hosts, even if others hang,
//   - directly and not through a pooler,
//   - with fixed settings, whatever a role, a database or the connection string has set.
package pgdial
