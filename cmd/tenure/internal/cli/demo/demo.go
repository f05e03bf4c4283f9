// Package demo implements the demonstration.
package demo

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
)

const demoLong = `Show failovers on a private database.

Starts a PostgreSQL server from the binaries of this machine in a temporary
directory, or creates an SQLite file if there are none, and three nodes as separate
processes. Kills the leader every few seconds and shows the leader, the term, and how
long each failover took: from just before the kill until the next term has begun.
Ctrl-C ends everything and removes all files. If standard output is not a terminal,
it prints lines and ends after four failovers, unless --for is set.`

// Nodes is the number of nodes of the demonstration.
const Nodes = 3

// shortShow is how many failovers are shown to a file or a pipe without --for.
const shortShow = 4

// takeoverLimit is how long the demonstration waits for a new leader.
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
	cmd.Flags().Var(&c.limit, "for", "end after this time; default at a signal, or after four failovers if the output is not a terminal")
	cmd.Flags().BoolVar(&c.sqlite, "sqlite", false, "use an SQLite file even if PostgreSQL is installed")
	cmd.Flags().Var(&c.every, "kill-every", "time until each leader is killed")
	return cmd
}

func (c *demoCommand) run(ctx context.Context) (err error) {
	if c.limit.Value > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit.Value)
		defer cancel()
	}
	screen := console.NewScreen(c.out)
	if screen != nil {
		if err := c.out.WriteText("Starting a private database ...\n"); err != nil {
			return err
		}
	}
	database, err := newDemoDatabase(ctx, c.sqlite)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it ended before it began
		}
		return err
	}
	defer func() { err = errors.Join(err, database.close()) }()

	// The kernel kills children with their parent thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	processes := newChildren(database)
	defer processes.close()
	show := &demoShow{children: processes, every: c.every.Value, view: &demoLines{out: c.out}}
	if screen == nil && c.limit.Value == 0 {
		show.most = shortShow
	}
	if screen != nil {
		show.view = &demoScreen{screen, database.name}
	}
	if screen == nil && !c.out.JSON() {
		if err := c.out.WriteText(introduction(database.name, c.every.Value, show.most)); err != nil {
			return err
		}
	}
	if err := show.run(ctx); err != nil {
		return err
	}
	summary := newSummary(show.failovers)
	return c.out.Print(summary, summary.text())
}
