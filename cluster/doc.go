// Package cluster lets nodes find each other, share roles, and leave politely,
// on the session that every [tenure.Node] already has. The database is the
// registry, the discovery service and the mesh: there is nothing else to run.
//
// [Join] opens a node and returns the [Member] that this process is.
package cluster
