package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/tenuretest"
)

// A consumer of a queue counts each job as work in flight and leaves jobs to other
// nodes when it may no longer accept any. RPCs can be counted in the same way.
func ExampleInFlight() {
	ctx := context.Background()
	member, err := cluster.Join(ctx, tenuretest.NewDatabase(), quiet("worker-1"), cluster.Config{})
	if err != nil {
		log.Fatal(err)
	}
	consume := func(job string) {
		guard, ok := member.InFlight().Enter()
		if !ok {
			fmt.Println(job, "goes back to the queue")
			return
		}
		defer guard.Done()
		fmt.Println(job, "is done")
	}
	consume("job 1")
	if err := member.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	consume("job 2")
	if err := member.Undrain(ctx); err != nil {
		log.Fatal(err)
	}
	consume("job 2")
	fmt.Println(member.Shutdown(ctx))
	// Output:
	// job 1 is done
	// job 2 goes back to the queue
	// job 2 is done
	// <nil>
}

// A whole program: it serves until SIGTERM, then ends its requests, releases its
// roles, and leaves.
func ExampleMember_ShutdownOnSignal() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // a program's own has no end
	defer cancel()
	member, err := cluster.Join(ctx, tenuretest.NewDatabase(), quiet("api-1"), cluster.Config{HTTPPort: 8080})
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	server := &http.Server{Addr: "127.0.0.1:0", Handler: member.InFlight().Handler(hello), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()

	err = member.ShutdownOnSignal(ctx)
	fmt.Println("left:", err)
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println("closed:", server.Shutdown(closing), errors.Is(<-served, http.ErrServerClosed))
	// Output:
	// left: <nil>
	// closed: <nil> true
}
