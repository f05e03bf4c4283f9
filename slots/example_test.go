package slots_test

import (
	"context"
	"fmt"
	"log"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/slots"
	"github.com/exactly-one/tenure/tenuretest"
)

// At most three nodes work at a time, each in another slot.
func Example() {
	ctx := context.Background()
	node, err := tenure.Open(ctx, tenuretest.NewDatabase(), tenure.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)

	workers, err := slots.New(node, "worker", slots.Config{Count: 3})
	if err != nil {
		log.Fatal(err)
	}
	err = workers.Run(ctx, func(_ context.Context, slot int, term *tenure.Term) error {
		fmt.Println("leads a slot:", term.Role().Name() == slots.RoleName("worker", slot))
		return tenure.Done
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: leads a slot: true
}
