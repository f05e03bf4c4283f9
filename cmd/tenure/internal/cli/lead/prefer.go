package lead

import (
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/preference"
	"github.com/exactly-one/tenure/internal/program/console"
)

// longestTakeOver is the library's limit of the wait.
const longestTakeOver = 24 * time.Hour

// registerPreference adds the flags for which nodes should lead.
func (f *Flags) registerPreference(flags *pflag.FlagSet) {
	f.priority.Least, f.priority.Most = math.MinInt32, math.MaxInt32
	f.takeOver.AllowZero = true
	flags.Var(&f.prefers, "prefer", "a label of the nodes that should lead, NAME=VALUE; repeatable; use the same value on every node")
	flags.Var(&f.priority, "priority", "how much this node should lead, which counts more than --prefer: sets the label "+preference.Label)
	flags.Var(&f.takeOver, "take-over-after", "take over from a less preferred leader that has led for this long while this node could lead; default 0s: off")
}

// applyPreference checks the flags and sets the label of the priority.
func (f *Flags) applyPreference(flags *pflag.FlagSet) error {
	if flags.Changed("priority") {
		f.Member.SetLabel(preference.Label, strconv.Itoa(f.priority.Value))
	} else if _, err := preference.Priority(f.Member.Labels()); err != nil {
		return console.Usage("--label: %w", err)
	}
	switch wait := f.takeOver.Value; {
	case wait == 0:
	case wait > longestTakeOver:
		return console.Usage("--take-over-after is %v; it must be at most %v", wait, longestTakeOver)
	case f.noLeader:
		return console.Usage("--take-over-after and --no-leader contradict each other")
	case f.Command.once:
		return console.Usage("--take-over-after and --once contradict each other: the leader would stop before its command has ended")
	case f.Node.Agent != "":
		return console.Usage("--take-over-after needs the labels of every leader, which an agent does not have: connect to the database instead of --agent")
	}
	return nil
}
