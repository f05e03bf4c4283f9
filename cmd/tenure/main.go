// Command tenure elects leaders on PostgreSQL from the command line, shows who
// leads, and says what would break an election.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(realMain()) }

func realMain() int {
	ctx, cancel := untilSignal()
	defer cancel()
	root := newRoot()
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, which
// asks for a graceful end. From then on a second one ends the program at once,
// as if nobody had caught the first.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(signals) // before the context ends
		select {
		case <-signals:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
