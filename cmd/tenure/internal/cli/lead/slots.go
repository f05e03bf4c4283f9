package lead

import (
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/slots"
)

// Slots are the numbers of simultaneous commands. Count is 0 without slots.
type Slots struct {
	Count   int
	PerNode int
}

// Validate refuses roles without the possibility of slots.
func (s Slots) Validate(role tenure.Role) error {
	switch {
	case s.Count == 0:
		return nil
	case role != tenure.NamedRole(role.Name()):
		return console.Usage("--slots requires a role without a lock key: each slot has another key")
	}
	if err := tenure.NamedRole(slots.RoleName(role.Name(), s.Count)).Validate(); err != nil {
		return console.Usage("--slots: the role of the last slot: %w", err)
	}
	return nil
}

// slotFlags are the flags for slots.
type slotFlags struct {
	count   flagvalue.Number
	perNode flagvalue.Number
}

func (f *slotFlags) register(flags *pflag.FlagSet) {
	f.count = flagvalue.Number{Least: 1, Most: slots.MaxCount}
	f.perNode = flagvalue.Number{Value: 1, Least: 1, Most: slots.MaxCount}
	flags.Var(&f.count, "slots", "run the command on up to this many nodes at a time, each with the role NAME/1, NAME/2, ...; every node should use the same number; default off")
	flags.Var(&f.perNode, "slots-per-node", "with --slots: how many of the commands this node may run at a time")
}

func (f *slotFlags) plan(flags *pflag.FlagSet) (Slots, error) {
	s := Slots{Count: f.count.Value, PerNode: f.perNode.Value}
	switch {
	case s.Count == 0 && flags.Changed("slots-per-node"):
		return s, console.Usage("--slots-per-node requires --slots")
	case s.Count > 0 && s.PerNode > s.Count:
		return s, console.Usage("--slots-per-node is %d; it can be at most --slots, %d", s.PerNode, s.Count)
	}
	return s, nil
}
