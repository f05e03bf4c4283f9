package dialects

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
)

// childMounts is a child with its own mounts. It mounts a file at the path of its source
// and is a node there. Without such a file it leads, mounts its own file at its own path,
// and reports "ended" with the cause of its term's end.
const childMounts = "mounts"

func mountChild() error {
	o, backend, db, err := readOrder()
	if err != nil {
		return err
	}
	if o.Mounted != "" {
		if err := mountFile(o.Mounted, pathOf(o.Source)); err != nil {
			return fmt.Errorf("mount a file: %w", err)
		}
		return nodeChild(childStands)
	}
	r := report{Kind: "ended"}
	if cause, err := leadUntilMounted(o, backend, db); err != nil {
		return err
	} else if cause != nil {
		r.Error = cause.Error()
	}
	printReport(r)
	return nil
}

func leadUntilMounted(o order, backend *lease.Backend, db *sql.DB) (cause, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer db.Close()
	defer backend.Close()
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: o.Name, Lease: o.Lease})
	if err != nil {
		return nil, err
	}
	election, err := node.Election(tenure.NamedRole(backendRole))
	if err == nil {
		err = election.Start(ctx)
	}
	if err != nil {
		return nil, err
	}
	term, err := election.WaitForLeadership(ctx)
	if err != nil {
		return nil, err
	}
	if err := mountFile(pathOf(o.Source), pathOf(o.Source)); err != nil {
		return nil, &os.PathError{Op: "mount", Path: pathOf(o.Source), Err: err}
	}
	select {
	case <-term.Context().Done():
		return context.Cause(term.Context()), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
