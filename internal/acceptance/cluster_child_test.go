package acceptance_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/postgres"
)

// childMember is a child that joins a cluster and campaigns for its roles. For every
// line on its standard input it reports what it knows of the others.
const childMember = "member"

// Statuses are the nodes that a member knows of, as "draining" or "draining,
// drained". The dead are not among them.
type statuses map[string]string

func statusOf(status membership.NodeStatus, drained bool) string {
	if drained {
		return string(status) + ", drained"
	}
	return string(status)
}

func statusesOf(nodes []membership.NodeInfo) statuses {
	known := make(statuses, len(nodes))
	for _, node := range nodes {
		if node.Status != membership.Dead {
			known[node.ID.String()] = statusOf(node.Status, node.Drained)
		}
	}
	return known
}

// roleName returns the name of one of several roles of a test.
func roleName(i int) string {
	if i == 0 {
		return role
	}
	return fmt.Sprintf("%s-%04d", role, i)
}

func joinCluster(o order) error {
	ctx := steplog.Recording(context.Background())
	db, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("child", o.Name)
	m, err := membership.Join(ctx, db,
		tenure.Config{Name: o.Name, Lease: o.Lease, CheckInterval: o.Lease / 2, Logger: logger},
		membership.Config{Address: "127.0.0.1"})
	if err != nil {
		return err
	}
	for i := range o.Roles {
		e, err := m.Node().Election(tenure.NamedRole(roleName(i)))
		if err != nil {
			return err
		}
		if err := e.Start(ctx); err != nil {
			return err
		}
	}
	answer("ready", m.ID().String())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer("knows", statusesOf(m.Nodes()))
	}
	return lines.Err()
}
