package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/postgres"
)

const rebalanceLong = `Plan how shared roles should move so that every node leads its fair share. If several
placements are equally fair, a role goes to a node that it prefers by label or name.
After confirmation, request the handovers from the leaders.

When a node joins or leaves, nodes move only the roles that must move; this command
makes the other moves.

The plan is shown first. Then the command asks for confirmation; without a terminal,
use --yes, or --dry-run to only see the plan. The leaders first finish their work in
flight. If not all roles have moved after --timeout, the exit code is 1; moves that
were requested continue. With -o json the first line is the plan, and each following
line is a step.`

// rebalanceCommand moves shared roles.
type rebalanceCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	spreads  []string
	dryRun   bool
	yes      bool
	timeout  flagvalue.Duration
}

// NewRebalance returns the command "tenure rebalance".
func NewRebalance(out *console.Output) *cobra.Command {
	c := &rebalanceCommand{out: out, timeout: flagvalue.Duration{Value: 5 * time.Minute}}
	cmd := &cobra.Command{
		Use:     "rebalance [--spread NAME]...",
		Short:   "Move shared roles to the best placement",
		Long:    rebalanceLong,
		Example: "  tenure rebalance --dry-run\n  tenure rebalance --spread partitions --yes",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.database.Register(flags)
	flags.StringArrayVar(&c.spreads, "spread", nil, "a `spread` to rebalance; repeatable; default all")
	flags.BoolVar(&c.dryRun, "dry-run", false, "only show the plan")
	flags.BoolVar(&c.yes, "yes", false, "apply the plan without confirmation")
	flags.Var(&c.timeout, "timeout", "how long to wait until all roles have moved")
	return cmd
}

// PlanRecord is a plan as printed.
type PlanRecord struct {
	Moves    []moveRecord      `json:"moves"`
	Unplaced []record.Unplaced `json:"unplaced"` // roles that no live node may lead
	Vacant   []string          `json:"vacant"`   // roles that are placed but have no leader now
	Nodes    []shareRecord     `json:"nodes"`
}

type moveRecord struct {
	Role string    `json:"role"`
	From uuid.UUID `json:"from"`
	To   uuid.UUID `json:"to"`
}

type shareRecord struct {
	Node     uuid.UUID `json:"node"`
	NodeName string    `json:"node_name"`
	Before   int       `json:"before"`
	After    int       `json:"after"`
}

// movedRecord is the progress of a plan as printed.
type movedRecord struct {
	Moved int `json:"moved"`
	Total int `json:"total"`
}

func newPlanRecord(plan cluster.RebalancePlan) PlanRecord {
	r := PlanRecord{
		Moves: []moveRecord{}, Unplaced: record.NewUnplaced(plan.Unplaced), Vacant: append([]string{}, plan.Vacant...), Nodes: []shareRecord{},
	}
	for _, move := range plan.Moves {
		r.Moves = append(r.Moves, moveRecord{move.Role, move.From, move.To})
	}
	for _, node := range plan.Nodes {
		r.Nodes = append(r.Nodes, shareRecord{node.Node, node.Name, node.Before, node.After})
	}
	return r
}

func (c *rebalanceCommand) run(cmd *cobra.Command) error {
	switch {
	case c.dryRun && c.yes:
		return console.Usage("--dry-run and --yes contradict each other")
	case !c.dryRun && !c.yes && !console.Confirmable(cmd, c.out):
		return console.Usage("cannot ask for confirmation here: use --yes to apply the plan, or --dry-run to only see it")
	}
	backend, err := c.database.Registry(cmd.Context())
	if err != nil {
		return err
	}
	defer backend.Close()
	plan, err := cluster.PlanRebalance(cmd.Context(), backend, c.spreads...)
	if errors.Is(err, cluster.ErrUnknownSpread) {
		return console.Usage("%w", err)
	}
	if err != nil {
		return err
	}
	if err := c.out.PrintText(newPlanRecord(plan), func(page *console.Page) { fillPlan(page, plan) }); err != nil {
		return err
	}
	if c.dryRun || len(plan.Moves) == 0 {
		return nil
	}
	if !c.yes {
		if agreed, err := console.Confirm(cmd, c.out, fmt.Sprintf("Move %d roles?", len(plan.Moves))); err != nil || !agreed {
			return err
		}
	}
	return c.apply(cmd.Context(), backend, plan)
}

// apply applies the plan.
func (c *rebalanceCommand) apply(ctx context.Context, backend *postgres.Backend, plan cluster.RebalancePlan) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout.Value)
	defer cancel()
	var printing error
	moved, total := 0, len(plan.Moves)
	err := plan.Apply(ctx, backend, connect.WhoAsks(), func(so int) {
		moved = so
		if printing == nil {
			printing = c.out.Print(movedRecord{so, total}, fmt.Sprintf("%s  %d of %d roles moved", console.ShortTime(time.Now()), so, total))
		}
	})
	switch {
	case printing != nil:
		return printing
	case err != nil && ctx.Err() != nil:
		return console.NotAcquired("%d of %d roles have moved; moves that were already requested continue: %w", moved, total, err)
	}
	return err
}

// maxMoves is how many moves the text output lists.
const maxMoves = 20

// fillPlan shows a plan.
func fillPlan(page *console.Page, plan cluster.RebalancePlan) {
	switch moves := len(plan.Moves); {
	case len(plan.Nodes) == 0:
		page.Line("no node shares roles")
	case moves == 0:
		page.Line("every role is where it should be")
	case moves == 1:
		page.Line("1 role moves")
	default:
		fmt.Fprintf(page, "%d roles move\n", moves)
	}
	names := map[cluster.NodeID]string{}
	if len(plan.Nodes) > 0 {
		rows := [][]string{{"NODE", "ID", "BEFORE", "AFTER"}}
		for _, node := range plan.Nodes {
			names[node.Node] = console.Flatten(node.Name)
			rows = append(rows, []string{console.Flatten(node.Name), node.Node.String(), strconv.Itoa(node.Before), strconv.Itoa(node.After)})
		}
		page.Line("")
		page.Table(rows)
	}
	name := func(id cluster.NodeID) string {
		if name, ok := names[id]; ok {
			return name
		}
		return id.String()
	}
	if len(plan.Moves) > 0 {
		rows := [][]string{{"ROLE", "FROM", "TO"}}
		for _, move := range plan.Moves[:min(len(plan.Moves), maxMoves)] {
			rows = append(rows, []string{console.Flatten(move.Role), name(move.From), name(move.To)})
		}
		page.Line("")
		page.Table(rows)
		if more := len(plan.Moves) - maxMoves; more > 0 {
			fmt.Fprintf(page, "and %d more: see -o json\n", more)
		}
	}
	if len(plan.Vacant) > 0 {
		fmt.Fprintf(page, "\n%d roles are placed but have no leader now\n", len(plan.Vacant))
	}
	fillUnplaced(page, record.NewUnplaced(plan.Unplaced))
}

// maxUnplaced is how many unplaced roles the text output lists.
const maxUnplaced = 20

// fillUnplaced lists the roles that no live node may lead.
func fillUnplaced(page *console.Page, unplaced []record.Unplaced) {
	if len(unplaced) == 0 {
		return
	}
	rows := [][]string{{"UNPLACED", "REASON"}}
	for _, role := range unplaced[:min(len(unplaced), maxUnplaced)] {
		rows = append(rows, []string{console.Flatten(role.Role), console.Flatten(role.Reason)})
	}
	page.Line("")
	page.Table(rows)
	if more := len(unplaced) - maxUnplaced; more > 0 {
		fmt.Fprintf(page, "and %d more\n", more)
	}
}
