// Package tenure elects leaders: at most one leader at a time, on the database
// you already run.
//
// A [Node] is one running process. It opens one session with a [Backend] (package
// postgres) and takes part in any number of elections over it. An [Election] is
// the node's candidacy for one [Role]. While the node leads the role it has a
// [Term], whose number only increases and is the fencing token.
//
//	db, err := postgres.New(dsn, postgres.Config{})
//	node, err := tenure.Open(ctx, db, tenure.Config{Name: "api-1"})
//	defer node.Close(ctx)
//
//	election, err := node.Election(tenure.NamedRole("billing"))
//	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
//		// ctx is canceled before another node can lead
//		return postgres.InTx(ctx, pool, term, func(tx pgx.Tx) error {
//			return work(ctx, tx) // commits only if this term is the latest
//		})
//	})
//
// # Contents
//
// Programs use [Open], [Node], [Config], [Role], [Election], [Term] and [Guard]. [Event]
// and [Stats] describe one node, [Leader] and [LeaderChange] the leaders, [Member] and
// [Description] all nodes. Package retry has the strategies for [Config].Retry.
//
// Authors of a backend implement [Backend], [Session] and, optionally, [RegistrySession]
// and [Listener]. Packages dberr, history and doctor define further results of this
// module's backends.
//
// # Guarantees
//
// No two nodes trust a term of one role at the same instant. A node trusts its term for at
// most Lease − Margin after it sent its last acknowledged heartbeat. The database reserves
// the role for the node for the full Lease. Trust ends on the node's own clocks and is
// never revived. When it ends, the term's context is canceled first, and the role is
// released only when the work has returned.
//
// # Limits
//
// Clocks are assumed to run at the same rate, and the database server's wall clock not to
// step by more than Margin. If the server ends the session of a live leader, the work of
// two nodes can overlap by one network delay plus the time the work needs to return. Work
// that ignores its context can overlap for as long as it runs. Effects outside the
// database are only as safe as the receiver's check of the term number. The complete list
// is in docs/explanation/guarantees.md.
package tenure
