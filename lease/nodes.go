package lease

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Leaders implements [tenure.Backend].
func (b *Backend) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	var leaders []tenure.Leader
	err := b.db.Read(ctx, "read leaders", func(ctx context.Context, on sqldb.Querier) error {
		readAt := time.Now() // before the query, so that the lease can only seem shorter
		scan := func(rows *sql.Rows) error {
			var (
				l                     = tenure.Leader{ReadAt: readAt}
				began, expires, valid int64
				node, labels          string
			)
			if err := rows.Scan(&l.Role, &l.Term, &node, &l.NodeName, &l.Host, &began, &expires, &valid,
				&l.Address, &l.HTTPPort, &l.GRPCPort, &labels, &l.Agent); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(labels), &l.Labels); err != nil {
				return fmt.Errorf("read the labels of node %s: %w", node, err)
			}
			if l.Agent == l.NodeName {
				l.Agent = ""
			}
			l.NodeID, _ = uuid.Parse(node) // the zero value if another program wrote it
			l.AcquiredAt, l.LeaseUntil = time.UnixMicro(began), time.UnixMicro(expires)
			l.ValidFor = microseconds(valid)
			leaders = append(leaders, l)
			return nil
		}
		if len(roles) == 0 {
			return sqldb.ForEach(ctx, on, b.sql(leadersQuery), scan)
		}
		return sqldb.InLists(b.db.Dialect, b.sql(leadersQuery)+" AND t.role IN %s", roles, nil, func(statement string, args []any) error {
			return sqldb.ForEach(ctx, on, statement, scan, args...)
		})
	})
	slices.SortFunc(leaders, func(a, b tenure.Leader) int { return compareRoles(a.Role, b.Role) })
	return leaders, err
}

// encodeLabels returns labels as their column has them.
func encodeLabels(labels map[string]string) (string, error) {
	if labels == nil {
		return "{}", nil
	}
	text, err := json.Marshal(labels)
	return string(text), err
}

// Roles returns the sorted names of all roles with a present or past candidate.
func (b *Backend) Roles(ctx context.Context) ([]string, error) {
	var roles []string
	err := b.db.Read(ctx, "read roles", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.sql(rolesQuery), func(rows *sql.Rows) error {
			var role string
			err := rows.Scan(&role)
			roles = append(roles, role)
			return err
		})
	})
	slices.Sort(roles)
	return roles, err
}

// Holders returns the status of the given roles, or of all roles in [Backend.Roles] if
// none are given. Without tables and without given roles it returns nothing.
func (b *Backend) Holders(ctx context.Context, roles ...tenure.Role) ([]history.RoleStatus, error) {
	version, err := b.SchemaVersion(ctx)
	if err != nil || version == 0 && len(roles) == 0 {
		return nil, err
	}
	var names []string
	for _, role := range roles {
		names = append(names, role.Name())
	}
	leaders := map[string]*tenure.Leader{}
	if version > 0 {
		found, err := b.Leaders(ctx, names...)
		if err != nil {
			return nil, err
		}
		for i, leader := range found {
			leaders[leader.Role] = &found[i]
		}
		if len(roles) == 0 {
			if names, err = b.Roles(ctx); err != nil {
				return nil, err
			}
		}
	}
	holders := make([]history.RoleStatus, len(names))
	for i, name := range names {
		holders[i] = history.RoleStatus{Role: name, Leader: leaders[name]}
	}
	return holders, nil
}

// Nodes returns the nodes with unexpired leases, sorted by name.
func (b *Backend) Nodes(ctx context.Context) ([]tenure.NodeInfo, error) {
	var nodes []tenure.NodeInfo
	err := b.db.Read(ctx, "read nodes", func(ctx context.Context, on sqldb.Querier) error {
		return sqldb.ForEach(ctx, on, b.sql(nodesQuery), func(rows *sql.Rows) error {
			var (
				node tenure.NodeInfo
				id   string
			)
			err := rows.Scan(&id, &node.Name, &node.Host)
			node.ID, _ = uuid.Parse(id)
			nodes = append(nodes, node)
			return err
		})
	})
	return nodes, err
}

// Request implements [tenure.Backend].
func (b *Backend) Request(ctx context.Context, request tenure.Request) error {
	if request.Kind == tenure.RequestHandOver {
		if err := b.offer(ctx, request); err != nil || request.Offer {
			return err
		}
	}
	return b.db.InTx(ctx, "request", func(ctx context.Context, on sqldb.Querier) error {
		var term, holder int64
		err := sqldb.ForEach(ctx, on, b.sql(holderQuery), func(rows *sql.Rows) error { return rows.Scan(&term, &holder) }, request.Role)
		switch {
		case err != nil:
			return err
		case term == 0, request.Term != 0 && request.Term != term:
			return fmt.Errorf("%w: %s", tenure.ErrNoLeader, request.Role)
		}
		target := ""
		if request.Target != uuid.Nil { // offer has found it alive
			target = request.Target.String()
		}
		err = sqldb.Exec(ctx, on, b.sql(requestQuery), string(request.Kind), request.Role, term, holder, target, request.By)
		if err != nil {
			return err
		}
		return sqldb.Exec(ctx, on, b.sql(announceVacancyQuery))
	})
}

// readRequests reads the requests for a session, except for ended terms. It also reads the
// offers it must answer, and the number of the last row of both.
func (b *Backend) readRequests(ctx context.Context, on sqldb.Querier, incarnation int64) (requests []tenure.Request, offered []offer, last int64, err error) {
	err = sqldb.ForEach(ctx, on, b.sql(takeRequestsQuery), func(rows *sql.Rows) error {
		var (
			r       tenure.Request
			target  string
			at      int64
			asked   int64
			present sql.NullInt64
		)
		if err := rows.Scan(&last, &r.Kind, &r.Role, &target, &r.By, &at, &asked, &present); err != nil {
			return err
		}
		if target != "" {
			r.Target, _ = uuid.Parse(target) // the zero value means no target
		}
		if r.Kind == kindOffer {
			offered = append(offered, offer{r.Role, asked})
			return nil
		}
		r.At = time.UnixMicro(at)
		if present.Valid && present.Int64 == asked {
			requests = append(requests, r)
		}
		return nil
	}, incarnation)
	return requests, offered, last, err
}
