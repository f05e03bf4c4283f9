package dialects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease"
)

// childFills is a child that leads on its own disk, fills the disk, and frees space again.
// It reports "full" with the failures of its checks.
const childFills = "fills"

// diskBytes is the size of that disk. It is below the limit of SQLite's log, so that every
// heartbeat needs space.
const diskBytes = 1 << 20

func fillChild() error {
	o, _, _, err := readOrder()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "tenure-disk-")
	if err != nil {
		return err
	}
	defer os.Remove(directory)
	unmount, err := mountDisk(directory, diskBytes)
	if err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	defer unmount() //nolint:errcheck // it goes with the process's namespace
	r := report{Kind: "full"}
	if err := leadOnFullDisk(directory, o.Lease); err != nil {
		r.Error = err.Error()
	}
	printReport(r)
	return nil
}

func leadOnFullDisk(directory string, length time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(directory, "leases.db")+"?_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()
	backend, err := lease.NewBackend(db, lease.SQLite, lease.Config{})
	if err != nil {
		return err
	}
	logged := &failures{}
	node, err := tenure.Open(ctx, backend, tenure.Config{Lease: length, Logger: slog.New(logged)})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole(backendRole))
	if err == nil {
		err = election.Start(ctx)
	}
	if err != nil {
		return err
	}
	term, err := election.WaitForLeadership(ctx)
	if err != nil {
		return err
	}
	ballast := filepath.Join(directory, "ballast")
	if err := fill(ballast); err != nil {
		return err
	}
	full := time.Now()
	if after := lastValid(ctx, term).Sub(full); after > length {
		return fmt.Errorf("the term was valid %v after the disk was full, with a lease of %v", after, length)
	}
	<-term.Context().Done()
	if !logged.have(dberr.ErrDiskFull) {
		return fmt.Errorf("no error says that the disk is full; there were %q", logged.kept)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	next, err := election.WaitForLeadership(ctx)
	if err != nil {
		return fmt.Errorf("there is room again: %w", err)
	}
	if next.Number() <= term.Number() {
		return fmt.Errorf("term %d came after term %d", next.Number(), term.Number())
	}
	return node.Close(ctx)
}

// fill writes a file until the disk is full.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			if errors.Is(err, syscall.ENOSPC) {
				return nil
			}
			return err
		}
	}
}
