// Package retention keeps the history of a cluster short: the leader of a role
// folds what is older than a time into sums of days, a little at a time: terms,
// changes of nodes, runs of schedules, and samples of metrics. RoleDays and the
// functions beside it read the sums.
package retention
