package roles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/settings"
)

const stepDownLong = `Ask the leader of a role to step down, and wait until the next term has begun.

The leader first finishes its work in flight, for at most its --stop-timeout. Then a
standby takes over; if none does, the old leader can acquire it again a second later. With --to the role is reserved
for that node for a short time; if another node then leads, the exit code is 1. If that
node does not campaign for the role, the request is refused and the leader keeps the role.

With --own, the leader steps down only if it is the node that TENURE_NODE_NAME names;
otherwise nothing happens, and the exit code is 0. Use it in the stop hook of a
container: it cannot end the term of another node.

If the leader steps down and no node takes over within --timeout, the output says so
and the exit code is 0. If the leader does not step down in that time, the exit code
is 1.`

// pollInterval is how often step-down checks whether the term has changed.
const pollInterval = 50 * time.Millisecond

// stepDownCommand asks a leader to step down.
type stepDownCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	roles    flagvalue.RoleFlags
	to       string
	own      bool
	timeout  flagvalue.Duration
}

// NewStepDown returns the command "tenure step-down".
func NewStepDown(out *console.Output) *cobra.Command {
	c := &stepDownCommand{out: out, timeout: flagvalue.Duration{Value: 30 * time.Second}}
	cmd := &cobra.Command{
		Use:     "step-down --role NAME [--to NODE]",
		Short:   "Ask a leader to step down",
		Long:    stepDownLong,
		Example: "  tenure step-down --role billing\n  tenure step-down --role billing --to api-2",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.roles.RegisterSingle(flags, "step down from")
	c.database.Register(flags)
	flags.StringVar(&c.to, "to", "", "hand the role over to this `node`: its id or its name")
	flags.BoolVar(&c.own, "own", false, "step down only if the node that "+settings.NodeNameVariable+" names is the leader; for a machine or a container that is about to stop")
	flags.Var(&c.timeout, "timeout", "how long to wait for the next term")
	return cmd
}

// StepDownRecord is the printed result.
type StepDownRecord struct {
	Role     string        `json:"role"`
	Previous *leaderRecord `json:"previous"`
	Leader   *leaderRecord `json:"leader"` // null if there is no leader
}

func (c *stepDownCommand) run(cmd *cobra.Command) error {
	role, err := c.roles.Single()
	if err != nil {
		return err
	}
	name := os.Getenv(settings.NodeNameVariable)
	if c.own && name == "" {
		return console.Usage("--own requires the name of the node in %s", settings.NodeNameVariable)
	}
	backend, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), c.timeout.Value)
	defer cancel()
	request, err := c.request(ctx, backend, role)
	if err != nil {
		return err
	}
	before, err := lookUp(ctx, backend, role.Name())
	switch {
	case err != nil:
		return err
	case c.own && (before == nil || before.NodeName != name):
		return c.printResult(role.Name(), before, before)
	case before == nil:
		if err := requireRoles(ctx, backend, role); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", tenure.ErrNoLeader, role)
	case before.NodeID == request.Target:
		return c.printResult(role.Name(), before, before)
	}
	return c.send(ctx, backend, request, before)
}

// send sends the request to the leader, and waits until it has been followed. A leader
// whose term has ended does not have to step down, and the next one must not.
func (c *stepDownCommand) send(ctx context.Context, backend connect.Backend, request tenure.Request, before *tenure.Leader) error {
	request.Term = before.Term
	if err := backend.Request(ctx, request); err != nil && !errors.Is(err, tenure.ErrNoLeader) {
		return err
	}
	after, err := c.await(ctx, backend, before)
	if err != nil {
		return err
	}
	if err := c.printResult(request.Role, before, after); err != nil {
		return err
	}
	if request.Target != uuid.Nil && (after == nil || after.NodeID != request.Target) {
		return console.NotAcquired("%s stepped down from %s, but %s did not take over", before.NodeName, request.Role, c.to)
	}
	return nil
}

// request returns the request to the leader of the role.
func (c *stepDownCommand) request(ctx context.Context, backend connect.Backend, role tenure.Role) (tenure.Request, error) {
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: role.Name(), By: connect.WhoAsks()}
	if c.to == "" {
		return request, nil
	}
	request.Kind = tenure.RequestHandOver
	target, err := findNode(ctx, backend, c.to)
	request.Target = target
	return request, err
}

func (c *stepDownCommand) printResult(role string, before, after *tenure.Leader) error {
	record := StepDownRecord{role, newLeaderRecord(before), newLeaderRecord(after)}
	return c.out.Print(record, leadsText(role, after))
}

// await waits for another term than before. It returns nil if, when ctx ends, before has
// ended and no other term has begun.
func (c *stepDownCommand) await(ctx context.Context, backend connect.Backend, before *tenure.Leader) (*tenure.Leader, error) {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	last := before
	for {
		leader, err := lookUp(ctx, backend, before.Role)
		switch {
		case err == nil && leader != nil && leader.Term != before.Term:
			return leader, nil
		case err == nil:
			last = leader
		case ctx.Err() == nil:
			return nil, err
		}
		select {
		case <-look.C:
			continue
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if last != nil {
			return nil, console.NotAcquired("%s did not step down from %s within %v: its work may take its --stop-timeout to end", before.NodeName, before.Role, c.timeout.Value)
		}
		return nil, nil
	}
}

// lookUp returns the leader of a role, or nil.
func lookUp(ctx context.Context, backend connect.Backend, role string) (*tenure.Leader, error) {
	leaders, err := backend.Leaders(ctx, role)
	if err != nil || len(leaders) == 0 {
		return nil, err
	}
	return &leaders[0], nil
}

// findNode returns the id of the node with this id or name.
func findNode(ctx context.Context, backend connect.Backend, wanted string) (uuid.UUID, error) {
	if id, err := uuid.Parse(wanted); err == nil {
		return id, nil
	}
	nodes, err := backend.Nodes(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	var ids []string
	var found uuid.UUID
	for _, node := range nodes {
		if node.Name == wanted {
			found = node.ID
			ids = append(ids, node.ID.String())
		}
	}
	switch len(ids) {
	case 0:
		return uuid.Nil, unknownNode(wanted, nodes)
	case 1:
		return found, nil
	default:
		return uuid.Nil, console.Usage("%d nodes have the name %q; use an id: %s", len(ids), wanted, strings.Join(ids, ", "))
	}
}
