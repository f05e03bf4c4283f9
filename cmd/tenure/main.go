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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a graceful end; a second one ends the program
	// at once, as if nobody had caught the first.
	defer context.AfterFunc(ctx, stop)()

	root := newRoot()
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}
