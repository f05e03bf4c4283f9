// Package tenure elects leaders: of all the nodes that stand for a role,
// exactly one leads at a time, and each time that it leads has a number that
// only grows.
//
// A [Node] is one running process. It opens one session with a [Backend]
// (package postgres) and stands in any number of elections over it. An
// [Election] is the node's candidacy for one [Role]; while it holds the role it
// has a [Term], whose number is the fencing token.
//
//	db, err := postgres.New(dsn, postgres.Config{})
//	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1"})
//	defer node.Close(ctx)
//
//	election, err := node.Election(tenure.NamedRole("billing"))
//	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
//		// ctx is canceled before anyone else can lead
//		return postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
//			return work(ctx, tx) // commits only if this term still stands
//		})
//	})
//
// # What is guaranteed
//
// No two nodes trust a term of one role at the same instant. A node trusts its
// term for at most Lease − Margin after it sent the last heartbeat that the
// database acknowledged; the database keeps the seat for a whole Lease. Trust
// ends by itself, on the node's own clocks, and is never revived. When it ends,
// the term's context is canceled first, and the role is released only when the
// work has returned.
//
// # What is not
//
// Clocks are trusted to run at the same rate, and the database server's wall
// clock not to step by more than Margin. When the server itself ends the
// session of a living leader, the overlap can be one network delay plus the
// time that the work takes to return. Work that ignores its context overlaps
// for as long as it does. Effects outside the database are as safe as their
// checking of the term number. The whole list is in docs/guarantees.md.
package tenure
