//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/postgres"
)

// The begin of a term commits asynchronously, so a promoted synchronous standby may lack a
// number that was used. The next number comes from its own clock, which is behind by less
// than the margin.
func TestNumberGrowsAfterPromotionWithSlowerClock(t *testing.T) {
	const behind, margin = 5 * time.Second, 6 * time.Second
	b := startFakeClock(t)
	if err := b.clock.Set(behind); err != nil {
		t.Fatal(err)
	}
	primary := b.server
	standby, err := primary.Replica(t.Context(), pgserver.ReplicaOptions{Synchronous: true})
	if err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, primary.DSN(), "SELECT sync_state = 'sync' FROM pg_stat_replication")
	awaitTrue(t, primary.DSN(), fmt.Sprintf("SELECT extract(epoch FROM clock_timestamp()) - %d > %f", time.Now().Unix(), (behind-time.Second).Seconds()))
	dsn := fmt.Sprintf("host=%s,%s port=%d,%d user=%s dbname=postgres sslmode=disable",
		primary.Host, standby.Host, primary.Port, standby.Port, pgserver.Superuser)
	role := tenure.NamedRole("scheduler")
	nominate := func(name string) *tenure.Election {
		t.Helper()
		backend, err := postgres.New(dsn, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		// No heartbeat falls into the test: it would wait for the standby.
		node, err := tenure.Open(t.Context(), backend, tenure.Config{
			Name: name, Lease: time.Minute, Margin: margin, RefreshInterval: 30 * time.Second, SynchronousFailover: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = node.Close(ctx)
			backend.Close()
		})
		election, err := node.Election(role)
		if err == nil {
			err = election.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return election
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	first := nominate("first")
	if _, err := first.WaitForLeadership(ctx); err != nil {
		t.Fatal(err)
	}
	second := nominate("second")
	awaitTrue(t, standby.DSN(), "SELECT count(*) = 2 FROM tenure_nodes")

	if err := standby.Configure(map[string]string{"primary_conninfo": ""}); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, standby.DSN(), "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'walreceiver')")
	if err := first.StepDown(ctx); err != nil {
		t.Fatal(err)
	}
	lost, err := second.WaitForLeadership(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := primary.Stop(t.Context(), pgserver.Immediate); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, standby.DSN(), fmt.Sprintf("SELECT term < %d FROM tenure_terms", lost.Number()))
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	awaitTrue(t, standby.DSN(), "SELECT server_lineage NOT LIKE '%/00000001' FROM tenure_terms")
	conn, err := pgx.Connect(t.Context(), standby.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var next int64
	if err := conn.QueryRow(t.Context(), "SELECT term FROM tenure_terms").Scan(&next); err != nil {
		t.Fatal(err)
	}
	t.Logf("term %d, and after the promotion %d, %v later", lost.Number(), next, time.Since(promoted))
	if next <= lost.Number() {
		t.Errorf("term %d after term %d: want the numbers to grow", next, lost.Number())
	}
}

// awaitTrue waits until a query returns true.
func awaitTrue(t *testing.T, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		var ok bool
		err := conn.QueryRow(ctx, sql).Scan(&ok)
		if ok {
			return
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatalf("%s: %v; want true", sql, err)
		}
	}
}
