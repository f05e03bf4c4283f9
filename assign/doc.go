// Package assign assigns the rows of a table of yours to the nodes of a cluster, under the
// leadership of a role: each pending row goes to the least busy active node with the row's
// capability.
//
// Only the leader's [Assigner] assigns rows. The rows of a dead node go to other nodes as
// soon as the cluster knows of the death. After too many failures a row becomes dead;
// [Replay] makes it pending again. Every assignment commits only while the leader's term
// is valid.
//
// The package is not a queue: the table, the payload and the worker are yours. A worker
// begins and finishes a row with one UPDATE each. The UPDATE compares the number of the
// assignment; see [Columns].Assignment.
package assign
