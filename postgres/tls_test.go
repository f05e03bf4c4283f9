//go:build unix

package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// certificate writes a server's key and certificate into its data directory.
func certificate(t *testing.T, server *pgtest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(server.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"server.crt": {Type: "CERTIFICATE", Bytes: cert},
		"server.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		path := filepath.Join(server.Dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		chownLike(t, path, owner)
	}
}

// chownLike changes a file's owner to that of another.
func chownLike(t *testing.T, path string, like os.FileInfo) {
	t.Helper()
	stat := like.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil {
		t.Fatal(err)
	}
}

// An interrupted Wait reads with a deadline. Over TLS too, that must lose
// neither a notification nor the connection.
func TestInterruptedWaitKeepsTLSConnection(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	certificate(t, server)
	server.Configure(t, map[string]string{"ssl": "on"})
	b := backendOn(t, strings.Replace(server.DSN(), "sslmode=disable", "sslmode=require", 1), Config{})
	eventually(t, backendOn(t, server.DSN(), Config{}), "SELECT current_setting('ssl') = 'on'")
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
			_, err := first.conn.Exec(context.Background(), string(stmtNotify), b.names.channel())
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
