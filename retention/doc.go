// Package retention keeps the history of a cluster short: the leader of a role
// folds what is older than a time into sums of days, a little at a time.
package retention
