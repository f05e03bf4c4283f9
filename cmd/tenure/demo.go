package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const demoLong = `Show failovers on a private database.

Starts a PostgreSQL server from the binaries of this machine in a temporary
directory, or makes a file of SQLite if there are none, and three nodes as separate processes; kills the leader every few
seconds and shows who leads, the term, and how long each failover took: from just
before the kill until the next term has begun. Ctrl-C ends everything and leaves
nothing behind.`

// demoNodes is how many nodes the demonstration has.
const demoNodes = 3

// takeoverLimit is when the demonstration gives up waiting for a new leader.
const takeoverLimit = 60 * time.Second

// demoCommand shows failovers.
type demoCommand struct {
	out    *output
	limit  duration
	every  duration
	sqlite bool
}

func newDemo(out *output) *cobra.Command {
	c := &demoCommand{out: out, every: duration{value: 5 * time.Second}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show failovers on a private database",
		Long:  demoLong,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().Var(&c.limit, "for", "end after this time; default: at a signal")
	cmd.Flags().BoolVar(&c.sqlite, "sqlite", false, "use a file of SQLite even where PostgreSQL is found")
	cmd.Flags().Var(&c.every, "kill-every", "how long each leader may live")
	return cmd
}

func (c *demoCommand) run(ctx context.Context) (err error) {
	if c.limit.value > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit.value)
		defer cancel()
	}
	terminal := c.terminal()
	if terminal != nil {
		if err := c.out.write("Starting a private database ...\n"); err != nil {
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
	show := &demoShow{children: processes, every: c.every.value, view: &demoLines{out: c.out}}
	if terminal != nil {
		show.view = &demoScreen{out: c.out, database: database.name, size: terminal}
	}
	if err := show.run(ctx); err != nil {
		return err
	}
	summary := newSummary(show.failovers)
	return c.out.print(summary, summary.text())
}

// terminal returns what tells the width and height of the terminal that the
// command prints to, or nil if it prints lines.
func (c *demoCommand) terminal() func() (width, height int, err error) {
	file, ok := c.out.w.(*os.File)
	if c.out.json() || !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return func() (int, int, error) { return term.GetSize(int(file.Fd())) }
}
