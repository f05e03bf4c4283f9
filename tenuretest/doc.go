// Package tenuretest is an in-memory database for tests of code with elections. Nodes,
// elections and terms are the real ones; only the database behind them is not.
//
//	db := tenuretest.NewDatabase()
//	node, err := tenure.Open(ctx, db, tenure.Config{})
//
// Several nodes of one test share a [Database], as several processes share a
// server. A test occupies and vacates roles, revokes a leader's session, ends
// its lease, keeps its answers back, or lets every statement fail.
//
// Time is the machine's or, inside a testing/synctest bubble, the bubble's: a lease passes
// in microseconds. Make the database inside the bubble. A test without a bubble can step a
// [Clock] by hand.
package tenuretest
