// Command tenure elects leaders on PostgreSQL from the command line, shows who
// leads, and says what would break an election.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // schedules tick in time zones also where the machine knows none

	"github.com/exactly-one/tenure/cmd/tenure/internal/guardian"
)

func main() { os.Exit(realMain()) }

// atRest is when a process has done what only starting needs.
const atRest = 2 * time.Second

func realMain() int {
	if len(os.Args) > 1 && os.Args[1] == guardian.CommandName {
		defer time.AfterFunc(atRest, returnMemory).Stop()
		return guardian.Main(os.Args[1:], os.Stderr)
	}
	ctx, cancel := untilSignal()
	defer cancel()
	root := newRoot()
	root.SetArgs(os.Args[1:])
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	return report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}

// interruption is the cause of a context that a signal ended. It matches
// [context.Canceled].
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return "signal: " + i.signal.String() }

// Is makes an interruption match what a context without a cause ends with.
func (i interruption) Is(target error) bool { return target == context.Canceled }

// interruptedBy returns the signal that ended a context, or nil.
func interruptedBy(ctx context.Context) os.Signal {
	var cause interruption
	if errors.As(context.Cause(ctx), &cause) {
		return cause.signal
	}
	return nil
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, which
// asks for a graceful end, with an [interruption] as the cause. From then on a
// second one ends the program at once, as if nobody had caught the first.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case received := <-signals:
			signal.Stop(signals) // before the context ends
			cancel(interruption{received})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}
