// Package top implements the command "top": it shows an installation live.
package top

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
)

const topLong = `Show roles, leaders, terms and nodes live, and changes such as failovers as they happen.
Firing alerts and failing schedules and processors are above the roles; roles without a
leader and dead nodes are first in their lists. It needs a terminal of at least 80
columns by 12 lines; in a pipe, use tenure status --watch or tenure observe.

The arrows select a role, or after the tab key a node. s makes the leader of the role
step down, d drains the node and u undrains it, each after a confirmation with y. q
quits. While the database does not answer, the last state is shown with its age.

Changes include the outages of the database that ended within the last hour. There are
no colors with --color never, or if the variable NO_COLOR is set. On leases, which have
no registry of nodes, nodes cannot be drained.`

// requestTimeout bounds a request.
const requestTimeout = 10 * time.Second

// topCommand shows an installation live.
type topCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
}

// New returns the command "tenure top".
func New(out *console.Output) *cobra.Command {
	c := &topCommand{out: out}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show roles, leaders and nodes live",
		Long:  topLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.database.Register(cmd.Flags())
	return cmd
}

func (c *topCommand) run(cmd *cobra.Command) error {
	if !isTerminal(cmd.InOrStdin(), c.out) {
		return console.Usage("tenure top needs a terminal: use tenure status --watch, which also prints JSON")
	}
	ctx := cmd.Context()
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	work, err := roles.OpenWork(ctx, &c.database, backend, "top")
	if err != nil {
		return err
	}
	defer work.Close()
	all := &reader{backend: backend, work: work}
	if _, err := all.read(ctx); err != nil { // before the screen changes
		return err
	}
	screen, err := openTerminal(cmd.InOrStdin(), c.out)
	if screen != nil {
		defer screen.close()
	}
	if err != nil {
		return err
	}
	l := &loop{reader: all, screen: screen, colors: c.out.Colors()}
	return l.run(ctx)
}

// loop draws the screen and handles keys.
type loop struct {
	reader *reader
	screen *terminal
	colors bool
	model  model
}

// run returns when ctx ends or q is pressed. Its goroutines have ended then, except the
// reader of the keyboard.
func (l *loop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	readings, ended := make(chan live.Reading[snapshot]), make(chan error, 1)
	group.Go(func() { // exits when ctx ends
		ended <- live.Follow(ctx, live.Source[snapshot]{
			Read:   l.reader.read,
			Listen: l.reader.backend.Listen,
		}, func(reading live.Reading[snapshot]) error {
			select {
			case readings <- reading:
			case <-ctx.Done():
			}
			return nil
		})
	})
	results, keys := make(chan func()), l.screen.keys()
	ticker := time.NewTicker(time.Second) // ages, and the size of the terminal
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case reading := <-readings:
			l.model.take(reading)
		case apply := <-results:
			apply()
		case k, open := <-keys:
			if !open {
				return nil // the terminal is gone
			}
			confirmed, quit := l.model.press(k)
			if quit {
				return nil
			}
			if confirmed != nil {
				group.Go(func() { l.request(ctx, confirmed, results) })
			}
		case <-ticker.C:
		}
		if l.model.reading.At.IsZero() {
			continue
		}
		err := l.screen.draw(func(width, height int) []string {
			return view{width, height, l.colors, time.Now()}.render(&l.model)
		})
		if err != nil {
			return err
		}
	}
}

// request makes a confirmed request.
func (l *loop) request(ctx context.Context, asked *confirmation, results chan<- func()) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := l.reader.backend.Request(bounded, asked.request)
	select {
	case results <- func() { l.model.done(asked, err) }:
	case <-ctx.Done():
	}
}
