// Package processor works off logs of events under the leadership of a role:
// in order, without gaps, and never twice at once.
//
// A [Group] of processors belongs to one role. While this node leads it, every
// processor of the group reads its log in batches and hands them to its handler;
// when the term ends, all of them stop before anybody else can lead. Packages
// view and outbox build on it.
package processor
