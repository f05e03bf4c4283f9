//go:build linux

package managed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// The disk fills up. At no time do two nodes lead, and when there is room again one
// leads without help.
func TestFullDiskHasAtMostOneLeader(t *testing.T) {
	pgtest.Long(t)
	const insert = "INSERT INTO big SELECT repeat('x', 1000) FROM generate_series(1, 10000)"
	t.Run("leader keeps its term while only tables cannot grow", func(t *testing.T) {
		s, disk := onSmallDisk(t)
		nodes := []*node{s.join("one"), s.join("two")}
		_, term := s.nextTerm(0, nodes...)
		free := disk.exhaust(s, insert)
		s.watchLeases(nodes)
		if !term.Valid() {
			t.Error("the term ended")
		}
		free()
		s.nextTerm(term.Number()-1, nodes...)
	})
	t.Run("term ends with the server, which cannot write its log", func(t *testing.T) {
		s, disk := onSmallDisk(t)
		nodes := []*node{s.join("one"), s.join("two")}
		_, term := s.nextTerm(0, nodes...)
		free := disk.exhaust(s, "SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000)), pg_switch_wal()")
		s.watchLeases(nodes)
		if term.Valid() {
			t.Error("the term outlived the server")
		}
		free()
		if err := disk.server.Restart(t.Context(), pgserver.Immediate); err != nil {
			t.Fatal(err)
		}
		s.nextTerm(term.Number(), nodes...)
	})
}

// watchLeases checks for some leases that no two nodes lead.
func (s *site) watchLeases(nodes []*node) {
	s.Helper()
	since := time.Now()
	s.await("some leases on a full disk", func() bool {
		if first := nodes[0].election.IsLeader(); nodes[1].election.IsLeader() && first && nodes[0].election.IsLeader() {
			s.Fatal("both nodes lead at the same time")
		}
		return time.Since(since) > 2*lease
	})
}

// smallDisk holds all files of a server.
type smallDisk struct {
	directory string
	server    *pgserver.Server
}

// onSmallDisk starts a server on a separate disk.
func onSmallDisk(t *testing.T) (*site, smallDisk) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: a small disk needs root, to be mounted")
	}
	directory, err := os.MkdirTemp("", "tenure-disk-")
	if err != nil {
		t.Fatal(err)
	}
	// It also runs if this process is killed, and then waits for the servers on the disk.
	caretaker, err := sandbox.NewCaretaker(`
while read -r _; do :; done
tries=0
while [ -n "$(ls -d "$1"/tenure-pg-* 2>/dev/null)" ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
umount -l "$1" 2>/dev/null
rmdir "$1"`, directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caretaker.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=220m,mode=1777"); err != nil {
		t.Skipf("NOT TESTED: a small disk cannot be mounted here: %v", err)
	}
	if err := os.Chmod(directory, 0o777|os.ModeSticky); err != nil { // the server's account passes through
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", directory)
	box, err := pgserver.NewSandbox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := box.Start(t.Context(), pgserver.Options{Settings: map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, admin: pgtest.Conn(t, server.DSN()), dsn: server.DSN()}
	s.do("CREATE TABLE big (x text)")
	return s, smallDisk{directory, server}
}

// exhaust fills the disk and then runs a statement until it fails. It returns what
// makes room again.
func (d smallDisk) exhaust(s *site, statement string) (free func()) {
	s.Helper()
	ballast := filepath.Join(d.directory, "ballast")
	fill(s.T, ballast)
	var err error
	for deadline := time.Now().Add(patience); err == nil; {
		if time.Now().After(deadline) {
			s.Fatalf("the disk is not full after %v", patience)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		_, err = s.admin.Exec(ctx, statement)
		cancel()
	}
	s.Logf("the disk is full: %v", err)
	return func() {
		s.Helper()
		if err := os.Remove(ballast); err != nil {
			s.Fatal(err)
		}
	}
}

// fill writes a file until the disk is full, but for a little.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
