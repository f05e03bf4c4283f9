package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retry"
)

// A connect function supplies the credentials; the connection string has none.
func TestConnectFunctionSuppliesCredentials(t *testing.T) {
	t.Parallel()
	const secret = "only the function knows"
	server := guarded(t, secret)
	c := clusterOn(t, server.DSNFor("node", "postgres"), "public")
	var calls atomic.Int32
	c.db.Connect = func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
		calls.Add(1)
		config.Password = secret
		return pgx.ConnectConfig(ctx, config)
	}
	leader := c.join("leader")
	term := leader.leads()
	found, err := leader.election.Leader(t.Context())
	if err != nil || found.Term != term.Number() {
		t.Errorf("the leader is %+v, %v; want term %d", found, err, term.Number())
	}
	if calls.Load() < 3 {
		t.Errorf("it was called %d times, want for the session, the watch and the question", calls.Load())
	}
}

// Of several hosts the primary is used, whatever its position in the list.
func TestPrimaryIsFoundAmongSeveralHosts(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	for name, hosts := range map[string][]*pgtest.Server{
		"replica first": {replica, primary},
		"primary first": {primary, replica},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOn(t, fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres sslmode=disable",
				hosts[0].Host, hosts[1].Host, hosts[0].Port, hosts[1].Port), primary.Schema(t))
			c.join("node").leads()
		})
	}
}

// What cannot be opened says why, and never a secret.
func TestOpenReportsCauseWithoutSecrets(t *testing.T) {
	t.Parallel()
	const secret = "no log may show this"
	server := guarded(t, "something else")
	for name, test := range map[string]struct {
		dsn  string
		want error
		says string
	}{
		"wrong password": {
			fmt.Sprintf("postgres://node:%s@%s/postgres?sslmode=disable", strings.ReplaceAll(secret, " ", "%20"), address(server)),
			tenure.ErrConnection, "28P01",
		},
		"database missing":  {server.DSNFor("postgres", "nowhere"), tenure.ErrConnection, "3D000"},
		"no server listens": {"postgres://postgres@127.0.0.1:1/postgres?sslmode=disable", tenure.ErrConnection, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := postgres.New(test.dsn, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			tries := 0
			_, err = tenure.Open(t.Context(), db, tenure.Config{
				Logger: logTo(t),
				Retry: retry.Func(func(a retry.Failure) (time.Duration, bool) {
					tries = a.Attempt
					return time.Millisecond, a.Attempt < 3
				}),
			})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want it to match %q and to contain %q", err, test.want, test.says)
			}
			if errors.Is(err, tenure.ErrRefused) || tries != 3 {
				t.Errorf("it was tried %d times; want 3, since it may pass", tries)
			}
			if strings.Contains(fmt.Sprintf("%+v", err), secret) {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

// guarded starts a server that asks the user "node" for a password.
func guarded(t *testing.T, password string) *pgtest.Server {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{HBA: []string{"host all node 127.0.0.1/32 scram-sha-256"}})
	execute(t, server.Conn(t), fmt.Sprintf("CREATE ROLE node SUPERUSER LOGIN PASSWORD '%s'", password))
	return server
}
