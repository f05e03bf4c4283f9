// Package cluster lets nodes discover one another, share roles, and leave gracefully, over
// the existing session of a [tenure.Node]. The database is the registry and the discovery
// service; no other system has to run.
//
// [Join] opens a node and returns it as a [Member] of the cluster.
package cluster
