// Package demo has the demonstration.
package demo

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
)

const demoLong = `Show failovers on a private database.

Starts a PostgreSQL server from the binaries of this machine in a temporary
directory, or makes a file of SQLite if there are none, and three nodes as separate processes; kills the leader every few
seconds and shows who leads, the term, and how long each failover took: from just
before the kill until the next term has begun. Ctrl-C ends everything and leaves
nothing behind.`

// Nodes is how many nodes the demonstration has.
const Nodes = 3

// takeoverLimit is when the demonstration gives up waiting for a new leader.
const takeoverLimit = 60 * time.Second

// demoCommand shows failovers.
type demoCommand struct {
	out    *console.Output
	limit  flagvalue.Duration
	every  flagvalue.Duration
	sqlite bool
}

// New returns the command "tenure demo".
func New(out *console.Output) *cobra.Command {
	c := &demoCommand{out: out, every: flagvalue.Duration{Value: 5 * time.Second}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show failovers on a private database",
		Long:  demoLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().Var(&c.limit, "for", "end after this time; default: at a signal")
	cmd.Flags().BoolVar(&c.sqlite, "sqlite", false, "use a file of SQLite even where PostgreSQL is found")
	cmd.Flags().Var(&c.every, "kill-every", "how long each leader may live")
	return cmd
}

func (c *demoCommand) run(ctx context.Context) (err error) {
	if c.limit.Value > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit.Value)
		defer cancel()
	}
	terminal := c.terminal()
	if terminal != nil {
		if err := c.out.WriteText("Starting a private database ...\n"); err != nil {
			return err
		}
	}
	database, err := newDemoDatabase(ctx, c.sqlite)
	if err != nil {
		if ctx.Err() != nil {
			return nil // ended before it began
		}
		return err
	}
	defer func() { err = errors.Join(err, database.close()) }()

	// The kernel kills children with the thread that started them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	processes := newChildren(database)
	defer processes.close()
	show := &demoShow{children: processes, every: c.every.Value, view: &demoLines{out: c.out}}
	if terminal != nil {
		show.view = &demoScreen{out: c.out, database: database.name, size: terminal}
	}
	if err := show.run(ctx); err != nil {
		return err
	}
	summary := newSummary(show.failovers)
	return c.out.Print(summary, summary.text())
}

// terminal returns what tells the width and height of the terminal that the
// command prints to, or nil if it prints lines.
func (c *demoCommand) terminal() func() (width, height int, err error) {
	file, ok := c.out.Writer.(*os.File)
	if c.out.JSON() || !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return func() (int, int, error) { return term.GetSize(int(file.Fd())) }
}
