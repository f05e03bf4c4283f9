// Package sqldb runs statements on SQL databases in three dialects. Package lease
// and package lease/store share it: transactions that are retried after conflicts
// and bounded on the server's side, the meaning of driver errors, and the identity
// of SQLite files.
package sqldb
