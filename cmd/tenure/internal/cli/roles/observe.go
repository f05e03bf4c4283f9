package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
)

const observeLong = `Print the leaders, and then every change, until a signal.

The command only reads, and waits until there are tables. It learns of a vacancy immediately through a notification,
and then looks up the next leader. In case a notification is lost, it also polls the
database every --check-interval. Without --role, --key or --key1 and --key2 it
watches all roles. With -o json each change is one object per line: time, role,
leader (null if there is none) and previous.`

// observeCommand prints leadership changes.
type observeCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	log      console.LogFlags
	roles    flagvalue.RoleFlags
	check    flagvalue.Duration
}

// NewObserve returns the command "tenure observe".
func NewObserve(out *console.Output) *cobra.Command {
	c := &observeCommand{out: out, check: flagvalue.Duration{Value: time.Second}}
	cmd := &cobra.Command{
		Use:   "observe [--role NAME]...",
		Short: "Watch leadership changes",
		Long:  observeLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.roles.Register(flags, "watch")
	c.database.Register(flags)
	c.log.Register(flags, "warn")
	flags.Var(&c.check, "check-interval", "time between polls if no notification arrives")
	return cmd
}

// ChangeRecord is a leadership change as printed.
type ChangeRecord = record.Change

func (c *observeCommand) run(cmd *cobra.Command) error {
	roles, err := c.roles.Roles()
	if err != nil {
		return err
	}
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = role.Name()
	}
	logger, err := c.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	backend, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()

	ctx := cmd.Context()
	err = connect.AwaitTables(ctx, backend, logger, func(ctx context.Context) error {
		_, err := backend.Leaders(ctx, names...)
		return err
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	for change := range tenure.Observe(ctx, backend, tenure.Config{CheckInterval: c.check.Value, Logger: logger}, roles...) {
		if err := c.printChange(time.Now(), change); err != nil {
			return err
		}
	}
	return nil
}

// printChange prints a change.
func (c *observeCommand) printChange(now time.Time, change tenure.LeaderChange) error {
	return c.out.Print(record.NewChange(now, change), fmt.Sprintf("%s  %s", console.ShortTime(now), leadsText(change.Role, change.Leader)))
}
