package postgres

import (
	"context"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/singlerole"
)

// Run campaigns for a role and calls work for each term, as [tenure.Election.Run] does. It
// opens and closes a new backend and node. The role is a name. [New] describes the
// connection string. Programs with several roles, or that need the node, use
// [tenure.Open].
//
// When ctx ends, Run resigns, waits until work has returned and the role is free, and
// returns nil. After [tenure.Done] it returns nil. If ctx ends before the first session is
// open, it returns why the session could not be opened. An error also matches ErrRefused
// if the database must not be used, and ErrStopped if the retry strategy gave up. A node
// that cannot leave within 10 s is cut off.
func Run(ctx context.Context, dsn, role string, work tenure.Work) error {
	return RunWith(ctx, dsn, tenure.NamedRole(role), RunConfig{}, work)
}

// RunConfig configures [RunWith]. The zero value is ready to use.
type RunConfig struct {
	Backend  Config
	Node     tenure.Config
	Election tenure.ElectionConfig
}

// RunWith is [Run] with settings and for any kind of role.
func RunWith(ctx context.Context, dsn string, role tenure.Role, config RunConfig, work tenure.Work) error {
	backend, err := New(dsn, config.Backend)
	if err != nil {
		return err
	}
	defer backend.Close()
	return singlerole.Run(ctx, backend, role, singlerole.Config{Node: config.Node, Election: config.Election}, work)
}
