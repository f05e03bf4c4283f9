package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// History returns terms, the latest begin first.
func (b *Backend) History(ctx context.Context, query history.Query) ([]history.Term, error) {
	return b.records.History(ctx, query)
}

// NodeHistory returns the changes of the nodes' statuses, the latest first.
func (b *Backend) NodeHistory(ctx context.Context, query history.Query) ([]history.NodeChange, error) {
	return b.records.NodeHistory(ctx, query)
}

// Outages returns the times in which no node reached the database, the latest first.
// The query selects by time only.
func (b *Backend) Outages(ctx context.Context, query history.Query) ([]history.Outage, error) {
	return b.records.Outages(ctx, query)
}

// Holders reads which sessions hold the locks of the given roles, in order. Without roles
// it reads all roles with a leader here, now or earlier, unless retired. It reads the
// whole lock table, which stops the table for a moment: call it seldom. Without a schema
// it can only look up roles with a fixed key.
func (b *Backend) Holders(ctx context.Context, roles ...tenure.Role) ([]history.RoleStatus, error) {
	return b.records.Holders(ctx, roles...)
}

// Leaders implements [tenure.Backend].
func (b *Backend) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	return b.records.Leaders(ctx, roles...)
}

// Nodes returns the live nodes, oldest session first. It reads only the nodes and
// the schema's version. It is safe for concurrent use.
func (b *Backend) Nodes(ctx context.Context) ([]tenure.NodeInfo, error) {
	return b.records.Nodes(ctx)
}

// Request implements [tenure.Backend].
func (b *Backend) Request(ctx context.Context, request tenure.Request) error {
	return b.records.Request(ctx, request)
}

// Retire marks a role as retired: it is no longer shown as vacant, and no alert fires
// because it has no leader. Its terms and their numbers stay, and if a node leads the
// role again, it is a role like any other. by is the requester.
//
// The error matches dberr.ErrHasLeader if a node leads the role, and dberr.ErrUnknownRole
// if no node has ever been a candidate for it here.
func (b *Backend) Retire(ctx context.Context, role, by string) error {
	return b.records.Retire(ctx, role, by)
}

// SaveSpread records the definition of a set of roles shared by nodes, a JSON document,
// for planners outside a node. It is safe for concurrent use.
func (b *Backend) SaveSpread(ctx context.Context, name string, roles []byte, by uuid.UUID) error {
	return b.records.SaveSpread(ctx, name, roles, by)
}

// Spreads returns the saved definitions by name. It is safe for concurrent use.
func (b *Backend) Spreads(ctx context.Context) (map[string][]byte, error) {
	return b.records.Spreads(ctx)
}
