//go:build unix

package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// EnableTLS gives the server a certificate for localhost and waits until it
// accepts TLS.
func (s *Server) EnableTLS(t testing.TB) {
	t.Helper()
	s.writeCertificate(t)
	s.Configure(t, map[string]string{"ssl": "on"})
	deadline := time.Now().Add(timeout)
	for on := ""; on != "on"; {
		if time.Now().After(deadline) {
			t.Fatalf("the server does not accept TLS after %v", timeout)
		}
		if err := s.Conn(t).QueryRow(t.Context(), "SHOW ssl").Scan(&on); err != nil {
			t.Fatal(err)
		}
	}
}

// writeCertificate writes a key and a certificate into the data directory.
func (s *Server) writeCertificate(t testing.TB) {
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
	owner, err := os.Stat(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	stat := owner.Sys().(*syscall.Stat_t)
	for name, block := range map[string]*pem.Block{
		"server.crt": {Type: "CERTIFICATE", Bytes: cert},
		"server.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		path := filepath.Join(s.Dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, int(stat.Uid), int(stat.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}
