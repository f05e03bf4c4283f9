// Package singlerole opens a node for one role, leads, and closes the node. It is the
// common part of the backends' functions Run.
package singlerole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// closeTimeout bounds how long a node may take to leave once it no longer campaigns. Its
// session is cut afterwards.
const closeTimeout = 10 * time.Second

// Config configures the node and its election.
type Config struct {
	Node     tenure.Config
	Election tenure.ElectionConfig
}

// Run opens a node on the backend and runs the election of the role with
// [tenure.Election.Run]. It closes the node, but not the backend.
func Run(ctx context.Context, backend tenure.Backend, role tenure.Role, config Config, work tenure.Work) (err error) {
	if err := role.Validate(); err != nil {
		return err
	}
	node, err := tenure.Open(ctx, backend, config.Node)
	if err != nil {
		return fmt.Errorf("campaign for %s: %w", role, err)
	}
	defer func() { // also if work panics
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if closing := node.Close(bounded); closing != nil {
			err = errors.Join(err, fmt.Errorf("close the node of %s: %w", role, closing))
		}
	}()
	election, err := node.ElectionWith(role, config.Election)
	if err == nil {
		err = election.Run(ctx, work)
	}
	if err != nil {
		return fmt.Errorf("campaign for %s: %w", role, err)
	}
	return nil
}
