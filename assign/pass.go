package assign

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// maxCapabilities is how many capabilities of waiting rows are read.
const maxCapabilities = 1000

// fresh plans statements with their values; see queries.go.
const fresh = pgx.QueryExecModeCacheDescribe

// pass performs passes over the table. It is not safe for concurrent use.
type pass struct {
	member   *cluster.Member
	backend  *postgres.Backend
	database postgres.Database
	config   Config
	term     *tenure.Term
	log      *slog.Logger
	bell     *doorbell.Bell

	table          table
	tableKnown     bool     // table matches the database
	reportedUnable []string // last reported capabilities that no node has
}

// share is the number of rows of a node.
type share struct{ assigned, running int }

func (s share) total() int { return s.assigned + s.running }

// noNode is the node of rows without a node in a state that needs one.
const noNode = ""

// situation is the current state of the table.
type situation struct {
	shares  map[string]share // by node
	waiting []string         // capabilities of pending rows, at most maxCapabilities
}

// assign performs one pass and reports whether another should follow
// immediately.
//
// The member's view decides whether there is anything to do. It may be late. Every action
// then follows from the registry itself. So a node marked dead before the term gets no
// rows, and a new node loses none.
func (p *pass) assign(ctx context.Context) (more bool, err error) {
	if !p.tableKnown {
		if p.table, err = readTable(ctx, p.database, p.config); err != nil {
			return false, err
		}
		p.tableKnown = true
	}
	now, err := readSituation(ctx, p.database, p.table, p.config)
	if err != nil {
		return false, err
	}
	nodes := p.member.Nodes()
	p.reportUnable(now, nodes)
	if !p.due(now, nodes) {
		return false, nil
	}
	if nodes, err = p.member.Registry().Nodes(ctx); err != nil {
		return false, err
	}
	if !p.due(now, nodes) {
		return false, nil
	}
	return p.work(ctx, now, nodes)
}

// placement counts the unfinished rows of nodes.
func (p *pass) placement(ctx context.Context, tx pgx.Tx, nodes []cluster.NodeInfo) (*placement, error) {
	rows, err := tx.Query(ctx, p.table.sql(countUnfinished), fresh, p.config.States.Assigned, p.config.States.Running)
	if err != nil {
		return nil, err
	}
	shares := map[string]share{}
	var node string
	var has share
	_, err = pgx.ForEachRow(rows, []any{&node, &has.assigned, &has.running}, func() error {
		shares[node] = has
		return nil
	})
	return newPlacement(p.config.MaxPerNode, p.config.candidates(nodes, shares)), err
}

func readSituation(ctx context.Context, database Querier, table table, config Config) (situation, error) {
	now := situation{shares: map[string]share{}}
	s := config.States
	rows, err := database.Query(ctx, table.sql(overview), fresh, s.Pending, s.Assigned, s.Running, maxCapabilities)
	if err != nil {
		return now, fmt.Errorf("read what is to be assigned: %w", err)
	}
	var node string
	var has share
	var capability *string
	_, err = pgx.ForEachRow(rows, []any{&node, &has.assigned, &has.running, &capability}, func() error {
		if capability != nil {
			now.waiting = append(now.waiting, *capability)
			return nil
		}
		// Rows without a node can have null or an empty text.
		had := now.shares[node]
		now.shares[node] = share{had.assigned + has.assigned, had.running + has.running}
		return nil
	})
	if err != nil {
		return now, fmt.Errorf("read what is to be assigned: %w", err)
	}
	return now, nil
}

// due reports whether there is anything to do with these nodes.
func (p *pass) due(now situation, nodes []cluster.NodeInfo) bool {
	gone, leaving := now.lost(nodes)
	if len(gone) > 0 || len(leaving) > 0 {
		return true
	}
	places := newPlacement(p.config.MaxPerNode, p.config.candidates(nodes, now.shares))
	if len(now.waiting) == maxCapabilities {
		return len(places.candidates) > 0
	}
	return slices.ContainsFunc(now.waiting, func(capability string) bool { return places.free(capability) > 0 })
}

// lost returns the nodes losing rows: dead, drained and missing nodes lose all rows, and
// leaving nodes lose rows they have not begun.
func (s situation) lost(nodes []cluster.NodeInfo) (gone, leaving []string) {
	gone, leaving = []string{}, []string{} // not nil, which would be NULL
	here := map[string]cluster.NodeInfo{}
	for _, node := range nodes {
		here[node.ID.String()] = node
	}
	for id, has := range s.shares {
		node, found := here[id]
		switch {
		case !found, node.Status == cluster.Dead, node.Drained:
			gone = append(gone, id)
		case node.Status == cluster.Draining && has.assigned > 0:
			leaving = append(leaving, id)
		}
	}
	return gone, leaving
}

// stride is how long rows are assigned, in consecutive transactions, before the
// table and the nodes are read again.
const stride = 100 * time.Millisecond

// work takes rows back and assigns rows.
func (p *pass) work(ctx context.Context, now situation, nodes []cluster.NodeInfo) (more bool, err error) {
	gone, leaving := now.lost(nodes)
	for begun := time.Now(); ; {
		more, err = p.transaction(ctx, nodes, gone, leaving)
		if !more || err != nil || len(gone)+len(leaving) > 0 || time.Since(begun) > stride {
			return more, err
		}
	}
}

// transaction does both for one batch of rows.
func (p *pass) transaction(ctx context.Context, nodes []cluster.NodeInfo, gone, leaving []string) (more bool, err error) {
	var back int
	var given assignment
	err = postgres.InTxOptions(ctx, p.database, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, p.term, func(tx pgx.Tx) error {
		bound := strconv.FormatInt(max(1, window(p.member.Node()).Milliseconds()), 10)
		if _, err := tx.Exec(ctx, prepareTransaction, bound, p.config.Table.Sanitize()); err != nil {
			return fmt.Errorf("wait for a transaction in flight: %w", err)
		}
		places, err := p.placement(ctx, tx, nodes)
		if err != nil {
			return fmt.Errorf("count unfinished rows: %w", err)
		}
		if back, err = p.takeBack(ctx, tx, gone, leaving); err != nil {
			return fmt.Errorf("unassign rows: %w", err)
		}
		if given, err = p.assignPending(ctx, tx, places); err != nil {
			return fmt.Errorf("assign rows: %w", err)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if back > 0 || len(given.ids) > 0 {
		p.bell.Looked(true)
	}
	p.notifyNodes(ctx, given)
	if back > 0 || given.dead > 0 {
		p.log.Info("rows were unassigned or became dead", "taken_back", back, "dead", given.dead, "assigned", len(given.ids)-given.dead)
	}
	return back == p.config.BatchSize || given.chosen == p.config.BatchSize, nil
}

func (p *pass) takeBack(ctx context.Context, tx pgx.Tx, gone, leaving []string) (rows int, err error) {
	if len(gone)+len(leaving) == 0 {
		return 0, nil
	}
	from := slices.Concat(gone, leaving)
	from = slices.DeleteFunc(from, func(id string) bool { return id == noNode })
	s := p.config.States
	tag, err := tx.Exec(ctx, p.table.sql(takeBack), fresh, s.Pending, s.Assigned, s.Running, s.Dead,
		from, leaving, p.config.MaxAttempts, p.config.BatchSize)
	return int(tag.RowsAffected()), err
}

// assignment has the rows assigned by a transaction.
type assignment struct {
	ids    []string
	nodes  []*string // the node of each row; nil if the row is dead
	dead   int
	chosen int // rows that were considered
}

func (p *pass) assignPending(ctx context.Context, tx pgx.Tx, places *placement) (assignment, error) {
	var given assignment
	served, limits := p.served(places)
	if len(served) == 0 {
		return given, nil
	}
	rows, err := tx.Query(ctx, p.table.sql(choosePending), fresh, p.config.States.Pending, served, limits, p.config.BatchSize)
	if err != nil {
		return given, err
	}
	var id, capability string
	var attempts int64
	_, err = pgx.ForEachRow(rows, []any{&id, &capability, &attempts}, func() error {
		given.chosen++
		if attempts >= int64(p.config.MaxAttempts) {
			given.ids, given.nodes = append(given.ids, id), append(given.nodes, nil)
			given.dead++
		} else if node, ok := places.chooseNode(capability); ok {
			given.ids, given.nodes = append(given.ids, id), append(given.nodes, &node)
		}
		return nil
	})
	if err != nil || len(given.ids) == 0 {
		return given, err
	}
	_, err = tx.Exec(ctx, p.table.sql(assignRows), fresh, given.ids, given.nodes, p.config.States.Assigned, p.config.States.Dead, p.term.Number())
	return given, err
}

// served returns the capabilities with free capacity of nodes, and how many rows of each
// to consider.
func (p *pass) served(places *placement) (capabilities []string, limits []int64) {
	all := map[string]bool{anyNode: true}
	for _, c := range places.candidates {
		for _, capability := range c.node.Capabilities {
			all[capability] = true
		}
	}
	for _, capability := range sortedKeys(all) {
		if free := places.free(capability); free > 0 {
			capabilities = append(capabilities, capability)
			limits = append(limits, int64(min(free, p.config.BatchSize)))
		}
	}
	return capabilities, limits
}

// notifyNodes notifies the nodes with new rows. It uses its own transaction: a full
// notification queue must not undo the assignment.
func (p *pass) notifyNodes(ctx context.Context, given assignment) {
	channels := map[string]bool{}
	for _, node := range given.nodes {
		if node != nil {
			channels[schema.Of(p.backend).Channel(nodeTopic(*node))] = true
		}
	}
	if len(channels) == 0 {
		return
	}
	const patience = time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := p.database.Exec(ctx, notifyChannels, sortedKeys(channels)); err != nil && ctx.Err() == nil {
		p.log.Warn("notifying nodes of their rows failed; they will poll", "error", err)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
