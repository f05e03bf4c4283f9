// Package processor reads logs of events under the leadership of a role: in
// order, without gaps, and with one reader at a time.
//
// A [Group] of processors belongs to one role. While this node leads the role,
// every processor of the group reads its log in batches and passes them to its
// handler. When the term ends, all processors stop before another node can
// lead. Packages view and outbox build on this package.
package processor
