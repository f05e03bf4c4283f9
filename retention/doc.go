// Package retention rolls up old rows into daily totals: terms, changes of nodes, runs
// of schedules, and samples of metrics. The leader of a role does so in small batches.
// [RoleDays], [NodeDays], [ScheduleDays] and [MetricDays] read the totals.
package retention
