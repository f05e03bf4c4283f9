//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

func killServer(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	pid := b.server.PID()
	if pid == 0 {
		return nil, "", errors.New("the server does not run")
	}
	left := sandbox.Children(pid)
	err := sandbox.Signal(pid, syscall.SIGKILL)
	until(ctx, 10*time.Second, func() bool { return b.server.PID() == 0 })
	return func(ctx context.Context) error {
		b.killLeft(ctx, left)
		return b.startAgain(ctx)
	}, "", err
}

// killLeft ends the other processes of a server whose first process was killed, as an init
// system does. They end on their own, except one that waits for another of them: while it
// lives, the server cannot start.
func (b *bed) killLeft(ctx context.Context, left []int) {
	until(ctx, 5*time.Second, func() bool {
		left = slices.DeleteFunc(left, func(pid int) bool {
			directory, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
			return err != nil || directory != b.server.Data // it has ended
		})
		return len(left) == 0
	})
	for _, pid := range left {
		_ = sandbox.Signal(pid, syscall.SIGKILL) // it may have ended
	}
}

// startAgain starts the server, unless it restarts on its own, and waits until it
// takes writes. Its old processes can hold its memory for a moment, and a recovery
// that began on a full disk ends the server although there is room again.
func (b *bed) startAgain(ctx context.Context) error {
	var err error
	until(ctx, injectTime, func() bool {
		if err = b.server.Start(ctx); err == nil {
			err = b.execute(ctx, "INSERT INTO chaos_load VALUES ('')")
		}
		return err == nil
	})
	return err
}

func restartServer(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	err := b.server.Restart(ctx, pgserver.Fast)
	return b.startAgain, "", err
}

func stopServer(_ context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	return func(context.Context) error { b.signalServer(syscall.SIGCONT); return nil }, "", b.freezeServer()
}

// freezeServer stops all processes of the server.
func (b *bed) freezeServer() error {
	pid := b.server.PID()
	if pid == 0 {
		return errors.New("the server does not run")
	}
	var all []int
	for range 2 { // a process may have started during the first pass
		all = append([]int{pid}, sandbox.Children(pid)...)
		for _, p := range all {
			_ = sandbox.Signal(p, syscall.SIGSTOP) // it may have ended
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = all
	_, err := fmt.Fprintln(b.caretaker, "stopped", strings.Trim(fmt.Sprint(all), "[]"))
	return err
}

// signalServer sends a signal to the processes that were stopped.
func (b *bed) signalServer(signal syscall.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pid := range b.stopped {
		_ = sandbox.Signal(pid, signal) // it may have ended
	}
	b.stopped = nil
	if b.caretaker != nil {
		_, _ = fmt.Fprintln(b.caretaker, "stopped") // fails if the caretaker has ended
	}
}

// killBackend kills one process of the server, so that the server ends all others.
func killBackend(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return nil, "", err
	}
	if err := sandbox.Signal(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
		return nil, "", err
	}
	until(ctx, 10*time.Second, func() bool { return conn.Ping(ctx) != nil }) // the server has noticed
	_ = conn.Close(ctx)
	return b.startAgain, "", nil
}

// loadServer makes the server write while the fault lasts.
func loadServer(ctx context.Context, b *bed, _ *member, s script.Step) (func(context.Context) error, string, error) {
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return nil, "", err
	}
	loading, stop := context.WithTimeout(context.WithoutCancel(ctx), s.For)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for loading.Err() == nil {
			_, err := conn.Exec(loading, "INSERT INTO chaos_load SELECT repeat('x', 500) FROM generate_series(1, 20000)")
			if err == nil {
				_, err = conn.Exec(loading, "TRUNCATE chaos_load")
			}
			if err == nil {
				_, err = conn.Exec(loading, "CHECKPOINT")
			}
			if err != nil {
				break // the time is over, or the server has stopped
			}
		}
		_ = conn.Close(context.Background())
	}()
	return func(context.Context) error { stop(); <-done; return nil }, "", nil
}

// fillDisk fills the server's disk, and then its write-ahead log.
func fillDisk(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	ballast := filepath.Join(b.disk, "ballast")
	heal := func(ctx context.Context) error {
		return errors.Join(os.Remove(ballast), b.startAgain(ctx))
	}
	if err := fill(ballast); err != nil {
		return heal, "", err
	}
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return heal, "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000)), pg_switch_wal()")
	}
	return heal, err.Error(), nil
}

// fill writes a file until the disk is full.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = file.Write(block)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, file.Close())
}

// stepClock sets the server's clock, and compares it with the machine's.
func stepClock(ctx context.Context, b *bed, _ *member, s script.Step) (func(context.Context) error, string, error) {
	set := func(ctx context.Context, offset time.Duration) error {
		return errors.Join(b.clock.Set(offset), pause(ctx, pgserver.FakeClockDelay))
	}
	heal := func(ctx context.Context) error { return set(ctx, 0) }
	if err := set(ctx, s.By); err != nil {
		return heal, "", err
	}
	var shows time.Time
	err := b.asAdmin(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&shows)
	})
	if err != nil {
		return heal, "", err
	}
	const imprecision = 200 * time.Millisecond // of a busy machine
	off := time.Until(shows)
	if (off - s.By).Abs() > imprecision {
		return heal, "", fmt.Errorf("the server's clock is off by %v", off)
	}
	return heal, fmt.Sprintf("by libfaketime: the clock is off by %v", off.Round(time.Millisecond)), nil
}
