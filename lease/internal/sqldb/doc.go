// Package sqldb runs statements on SQL databases in three dialects, for packages lease and
// lease/store. It has
//
//   - transactions, retried after conflicts and bounded on the server's side,
//   - the meaning of driver errors,
//   - the identity of SQLite files.
package sqldb
