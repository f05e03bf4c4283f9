package roles

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/rolespec"
)

const roleLong = `Change the recorded settings of a role.`

const rekeyLong = `Change the recorded lock key of a role. ROLE is the role as its candidates give it:
NAME for the key that is derived from the name, or NAME=KEY.

The role must have no leader, and no session may hold the lock of its old or its new
key: otherwise the exit code is 2. Stop its candidates first. Candidates that still
use the old key afterwards are refused until they give the new one. The numbers of
its terms continue.`

// rekeyCommand changes the recorded key of a role.
type rekeyCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
}

// NewRole returns the command "tenure role". complete offers roles.
func NewRole(out *console.Output, complete cobra.CompletionFunc) *cobra.Command {
	return console.Group("role", "Change what is recorded of a role", roleLong, newRekey(out, complete))
}

func newRekey(out *console.Output, complete cobra.CompletionFunc) *cobra.Command {
	c := &rekeyCommand{out: out}
	cmd := &cobra.Command{
		Use:               "rekey ROLE",
		Short:             "Change the lock key of a role",
		Long:              rekeyLong,
		Example:           "  tenure role rekey billing=0x464F52470001\n  tenure role rekey billing",
		ValidArgsFunction: complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return console.Usage("%s takes one role, but got %d: NAME or NAME=KEY", cmd.CommandPath(), len(args))
		}
		_, err := rolespec.Parse(args[0])
		return err
	}
	consent := &console.ConsentFlag{Out: out}
	consent.Guard(cmd, func(args []string) string {
		return fmt.Sprintf("Change the recorded lock key to that of %s? Candidates that use another key cannot lead any longer.", args[0])
	})
	c.database.Register(cmd.Flags())
	return cmd
}

// RekeyedRecord is the printed result.
type RekeyedRecord struct {
	Role   string `json:"role"`
	Before string `json:"before"` // advisory lock keys: N or A:B
	Key    string `json:"key"`
}

func (c *rekeyCommand) run(cmd *cobra.Command, text string) error {
	role, err := rolespec.Parse(text)
	if err != nil {
		return err
	}
	backend, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()
	before, after, err := backend.Rekey(cmd.Context(), role)
	switch {
	case errors.Is(err, dberr.ErrUnknownRole):
		return unknownRole(cmd.Context(), backend, role.Name(), err)
	case errors.Is(err, dberr.ErrHasLeader), errors.Is(err, tenure.ErrKeyMismatch):
		return console.Usage("%w", err)
	case err != nil:
		return err
	}
	text = fmt.Sprintf("%s has the key %s instead of %s", role.Name(), after, before)
	if after == before {
		text = fmt.Sprintf("%s already has the key %s", role.Name(), after)
	}
	return c.out.Print(RekeyedRecord{role.Name(), before, after}, text)
}
