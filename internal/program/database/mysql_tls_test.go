package database

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// authority signs certificates for a test.
type authority struct {
	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

// newAuthority keeps its files where the server's account may read them.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	directory, err := os.MkdirTemp("", "tenure-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	a := &authority{directory: directory}
	a.issue(t, "ca")
	return a
}

// issue makes NAME.pem and NAME.key. The first certificate is the authority's
// own.
func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if a.certificate == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		a.certificate, a.key = template, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(a.path(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644),
		os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.directory, name) }

func TestMySQLVerifiesTheServer(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	trusted, other := newAuthority(t), newAuthority(t)
	trusted.issue(t, "server")
	trusted.issue(t, "client")
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{
		"ssl_ca": trusted.path("ca.pem"), "ssl_cert": trusted.path("server.pem"), "ssl_key": trusted.path("server.key"),
	}})
	server.Execute(t, "CREATE USER known@'127.0.0.1' REQUIRE X509; GRANT ALL ON mysql.* TO known@'127.0.0.1'")
	plain := mariatest.Shared(t)
	ca, client := "ca="+trusted.path("ca.pem"), "cert="+trusted.path("client.pem")+"&key="+trusted.path("client.key")
	url := server.URL("mysql")
	known := "mysql://known" + url[len("mysql://root"):]

	for name, test := range map[string]struct {
		dsn              string
		fails, encrypted bool
	}{
		"the default":                        {url, false, true},
		"preferred":                          {url + "?tls=preferred", false, true},
		"any certificate":                    {url + "?tls=skip-verify", false, true},
		"in the clear":                       {url + "?tls=false", false, false},
		"an authority that is trusted":       {url + "?" + ca, false, true},
		"the same in words":                  {url + "?tls=true&" + ca, false, true},
		"the authorities of the system":      {url + "?tls=true", true, false},
		"another authority":                  {url + "?ca=" + other.path("ca.pem"), true, false},
		"no certificate where one is asked":  {known + "?" + ca, true, false},
		"a certificate":                      {known + "?" + ca + "&" + client, false, true},
		"a server without it: the default":   {plain.URL("mysql"), false, false},
		"a server without it: verified":      {plain.URL("mysql") + "?" + ca, true, false},
		"a server without it: not preferred": {plain.URL("mysql") + "?tls=skip-verify", true, false},
	} {
		db := open(t, parse(t, test.dsn))
		var what, cipher string
		err := db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&what, &cipher)
		if (err != nil) != test.fails || (cipher != "") != test.encrypted {
			t.Errorf("%s: cipher %q, %v", name, cipher, err)
		}
	}
}

func TestMySQLRejectsBadCertificates(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, parameters := range []string{"ca=" + empty, "cert=" + empty + "&key=" + empty} {
		if _, err := Parse("mysql://u@h/d?"+parameters, nil); err == nil {
			t.Errorf("%s was accepted", parameters)
		}
	}
}
