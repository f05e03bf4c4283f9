package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A synchronous failover may be declared only if every commit waits for all standbys:
// otherwise those that were not promoted still acknowledge the old primary's heartbeats.
func TestDoctorWarnsOfStandbysThatAcknowledgeAfterPromotion(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"synchronous_commit": "local"}})
	b := backendOn(t, server.DSN(), Config{})
	const (
		all    = "every commit waits for all"
		some   = "so the others acknowledge"
		every  = "every standby counts"
		none   = "no commit waits for a standby"
		writes = "synchronous_commit is local"
	)
	for _, test := range []struct{ setting, commits, want string }{
		{"", "on", none},
		{"*", "on", every},
		{`"*"`, "on", every},
		{"FIRST 1 (*)", "on", every},
		{"ANY 2 (a, *)", "on", every},
		{"a", "on", all},
		{"a, b", "on", some},
		{"FIRST 1 (a,b)", "on", some},
		{"1 (a, b)", "on", some},
		{"ANY 1 (a, b)", "on", some},
		{" any\t2 ( a ,b , c )", "on", some},
		{"ANY 2 (a, b)", "on", all},
		{"2(a,b)", "on", all},
		{"first 2 (a, b)", "on", all},
		{`ANY 1 ("a, b")`, "on", all},
		{`"first", "any"`, "on", some},
		{`FIRST 2 ("a ""(b", "c)")`, "on", all},
		{`"a""b"`, "on", all},
		{"a", "local", writes},
		{"ANY 1 (a, b)", "local", some},
	} {
		t.Run(test.setting+" "+test.commits, func(t *testing.T) {
			server.Configure(t, map[string]string{"synchronous_standby_names": test.setting, "synchronous_commit": test.commits})
			quoted := strings.ReplaceAll(test.setting, "'", "''")
			eventually(t, b, "SELECT current_setting('synchronous_standby_names') = '"+quoted+"' AND (SELECT reset_val = '"+test.commits+"' FROM pg_settings WHERE name = 'synchronous_commit')")
			got, want := b.CheckSynchronousFailover(t.Context()), doctor.Warning
			if test.want == all {
				want = doctor.OK
			}
			if got.Severity != want || !strings.Contains(got.Detail, test.want) || (got.Advice == "") != (want == doctor.OK) {
				t.Errorf("%+v; want %v with %q, and advice for a warning", got, want, test.want)
			}
		})
	}
}

// With ANY 1 (a, b), b acknowledges the heartbeats of a leader on the old primary after a was
// promoted, so two nodes lead. With ANY 2 (a, b) it does not.
func TestOtherStandbyAcknowledgesOldPrimary(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for needed, acknowledged := range map[string]bool{"ANY 1": true, "ANY 2": false} {
		t.Run(needed, func(t *testing.T) {
			t.Parallel()
			primary := pgtest.Start(t, pgtest.Options{})
			b := backendOn(t, primary.DSN(), Config{})
			promoted := primary.Replica(t, pgtest.ReplicaOptions{})
			primary.Replica(t, pgtest.ReplicaOptions{})
			var names []string
			err := b.reader.Ask(t.Context(), "read", func(ctx context.Context, conn *pgx.Conn) error {
				rows, _ := conn.Query(ctx, "SELECT quote_ident(application_name) FROM pg_stat_replication")
				var err error
				names, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
			if err != nil || len(names) != 2 {
				t.Fatalf("standbys %v, %v; want two", names, err)
			}
			setting := needed + " (" + strings.Join(names, ", ") + ")"
			primary.Configure(t, map[string]string{"synchronous_standby_names": setting})
			eventually(t, b, "SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state = 'quorum'")
			leader := open(t, b, lasting)
			leader.take("scheduler")
			leader.beat()
			promoted.Promote(t)
			eventually(t, b, "SELECT count(*) = 1 FROM pg_stat_replication")
			done := make(chan error, 1)
			go func() { _, err := leader.Heartbeat(tenure.Load{}); done <- err }()
			select {
			case err := <-done:
				if !acknowledged || err != nil {
					t.Errorf("the heartbeat on the old primary was answered with %v; want it acknowledged: %v", err, acknowledged)
				}
			case <-time.After(map[bool]time.Duration{true: patience, false: time.Second}[acknowledged]):
				if acknowledged {
					t.Error("the heartbeat on the old primary was not acknowledged")
				}
				primary.Stop(t, "immediate")
				if err := <-done; err == nil {
					t.Error("a heartbeat was acknowledged by a server that had stopped")
				}
			}
		})
	}
}

// Two standbys of one name: the server waits for one of them.
func TestDoctorWarnsOfStandbysWithOneName(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	for range 2 {
		standby := server.Replica(t, pgtest.ReplicaOptions{})
		standby.Configure(t, map[string]string{"primary_conninfo": "host=" + server.Host + " port=" + row[string](t, b, "SHOW port") + " user=postgres application_name=Twin"})
	}
	eventually(t, b, "SELECT count(*) = 2 FROM pg_stat_replication WHERE application_name = 'Twin'")
	server.Configure(t, map[string]string{"synchronous_standby_names": "twin"})
	eventually(t, b, "SELECT current_setting('synchronous_standby_names') = 'twin'")
	if got := b.CheckSynchronousFailover(t.Context()); got.Severity != doctor.Warning || !strings.Contains(got.Detail, "several standbys are named twin") {
		t.Errorf("%+v; want a warning that several standbys have the name", got)
	}
}
