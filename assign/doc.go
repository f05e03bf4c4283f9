// Package assign gives the rows of a table of yours to the nodes of a cluster,
// under the leadership of a role: each pending row to the active node that has
// the row's capability and the least to do.
//
// The leader's [Assigner] is all that gives rows out. The rows of a node that
// died go to others as soon as the cluster knows of the death; those that failed
// too often go to a state for dead ones, from where [Replay] brings them back.
// Every assignment is committed only while the leader's term stands.
//
// It is no queue: the table, the payload, and what a worker does are yours. A
// worker begins and finishes a row by one UPDATE each, which says the number of
// the assignment; see [Columns].Assignment.
package assign
