//go:build unix

package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// An interrupted Wait reads with a deadline. Over TLS too, that must lose
// neither a notification nor the connection.
func TestInterruptedWaitKeepsTLSConnection(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.EnableTLS(t)
	b := backendOn(t, strings.Replace(server.DSN(), "sslmode=disable", "sslmode=require", 1), Config{})
	first, second := open(t, b), open(t, b)
	if _, encrypted := first.conn.PgConn().Conn().(*tls.Conn); !encrypted {
		t.Fatal("the connection is not encrypted")
	}
	second.drain()
	first.drain()
	for i := range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		told := make(chan error, 1)
		go func() { // the end of the wait and the notification race
			err := link.ForEach(first.conn, stmtNotify, nil, b.names.ElectionsChannel(), link.RolesOnly)
			cancel()
			told <- err
		}()
		changed, err := second.Wait(ctx)
		if err != nil {
			t.Fatalf("wait %d: %v", i, err)
		}
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		if !changed && !second.wait(patience) {
			t.Fatalf("notification %d was lost", i)
		}
		second.beat()
	}
	first.take("scheduler")
	first.Abort()
	second.win("scheduler")
}

// The address is that of hostaddr, and the certificate must be valid for the host.
func TestHostaddrIsUsedAndTheHostVerified(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.EnableTLS(t) // for localhost
	dsn := func(host string) string {
		return fmt.Sprintf("host=%s hostaddr=%s port=%d user=postgres dbname=postgres sslmode=verify-full sslrootcert=%s",
			host, server.Host, server.Port, filepath.Join(server.Dir, "server.crt"))
	}
	s := open(t, backendOn(t, dsn("localhost"), Config{}))
	if _, encrypted := s.conn.PgConn().Conn().(*tls.Conn); !encrypted {
		t.Error("the connection is not encrypted")
	}
	// No resolver knows this host.
	_, err := backendOn(t, dsn("db.invalid"), Config{}).connect.DialReader(t.Context(), "test")
	if err == nil || !strings.Contains(err.Error(), "certificate is valid for localhost, not db.invalid") {
		t.Errorf("another host: got %v, want that the certificate is not valid for it", err)
	}
}
