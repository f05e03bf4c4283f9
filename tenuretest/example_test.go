package tenuretest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// A leader loses its session, and leads again under another term.
func ExampleDatabase() {
	ctx := context.Background()
	db := tenuretest.NewDatabase()
	node, err := tenure.Open(ctx, db, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	role := tenure.NamedRole("billing")
	election, err := node.Election(role)
	if err != nil {
		log.Fatal(err)
	}
	var last int64
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		fmt.Println("leading, number grows:", term.Number() > last)
		if last > 0 {
			return tenure.Done
		}
		last = term.Number()
		db.Revoke(role)
		<-ctx.Done()
		fmt.Println("session lost:", errors.Is(context.Cause(ctx), tenure.ErrSessionLost))
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// leading, number grows: true
	// session lost: true
	// leading, number grows: true
	// error: <nil>
}

// Without a bubble, a test moves its own clock: here past the moment at
// which a leader that gets no answers stops believing in its term.
func ExampleClock() {
	ctx := context.Background()
	clock := tenuretest.NewClock()
	db := tenuretest.NewDatabaseWithClock(clock)
	node, err := tenure.Open(ctx, db, tenure.Config{
		Lease: 10 * time.Second, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	role := tenure.NamedRole("billing")
	election, err := node.Election(role)
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(time.Hour) // heartbeats are sent in that time
	fmt.Println("after an hour:", election.IsLeader())

	db.Silence(role)
	clock.Advance(9 * time.Second)
	fmt.Println("after 9 s of silence:", election.IsLeader(), errors.Is(context.Cause(term.Context()), tenure.ErrTrustExpired))
	if err := term.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// after an hour: true
	// after 9 s of silence: false true
}
