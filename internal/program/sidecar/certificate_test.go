package sidecar

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// keyPair makes a certificate for a name that signs itself, and its key, in PEM.
func keyPair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// files are a certificate's two files.
type files struct{ cert, key string }

func newFiles(t *testing.T) files {
	t.Helper()
	folder := t.TempDir()
	return files{filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")}
}

func (f files) write(t *testing.T, cert, key []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(f.cert, cert, 0o600), os.WriteFile(f.key, key, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestChangedCertificateIsLoaded: new files count a second later; what cannot be used
// leaves the old certificate and is logged once.
func TestChangedCertificateIsLoaded(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	cert1, key1 := keyPair(t, "one")
	cert2, key2 := keyPair(t, "two")
	f.write(t, cert1, key1)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := OpenCertificate(f.cert, f.key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		expect := func(want string, lines int) {
			t.Helper()
			pair, err := c.get(nil)
			if err != nil || pair.Leaf.Subject.CommonName != want || strings.Count(log.String(), "\n") != lines {
				t.Fatalf("%v, %v; want %s, and %d lines in %s", pair.Leaf.Subject, err, want, lines, log.String())
			}
		}
		f.write(t, cert2, key1) // half replaced
		expect("one", 0)
		for range 3 {
			time.Sleep(time.Second)
			expect("one", 1)
		}
		f.write(t, cert2, key2)
		time.Sleep(500 * time.Millisecond)
		expect("one", 1)
		time.Sleep(500 * time.Millisecond)
		expect("two", 2)
		if err := os.Remove(f.cert); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		expect("two", 3)
		f.write(t, cert1, key1)
		if err := c.reload(); err != nil {
			t.Fatal(err)
		}
		expect("one", 4)
	})
}

// TestInvalidCertificateIsReportedOnOneLine: what is wrong is one clear line.
func TestInvalidCertificateIsReportedOnOneLine(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t, "one")
	_, other := keyPair(t, "two")
	for name, pair := range map[string][2][]byte{
		"another key": {cert, other}, "nonsense": {[]byte("x"), []byte("y")}, "exchanged": {key, cert}, "empty": {nil, nil},
	} {
		f := newFiles(t)
		f.write(t, pair[0], pair[1])
		_, err := OpenCertificate(f.cert, f.key, silent)
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), f.cert) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := newFiles(t)
	f.write(t, cert, key)
	for _, missing := range []files{{f.cert, f.key + "x"}, {f.cert + "x", f.key}, {filepath.Dir(f.cert), f.key}} {
		if _, err := OpenCertificate(missing.cert, missing.key, silent); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%v: %v", missing, err)
		}
	}
	if err := os.Chmod(f.key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCertificate(f.cert, f.key, silent); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "chmod 0640 "+f.key) {
		t.Errorf("a key that every user can read: %v", err)
	}
	if err := errors.Join(os.Chmod(f.key, 0o600), os.Chmod(f.cert, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCertificate(f.cert, f.key, silent); err != nil {
		t.Errorf("a certificate that every user can read: %v", err)
	}
	large := bytes.Repeat([]byte("x"), maxFile+1)
	f.write(t, large, key)
	if _, err := OpenCertificate(f.cert, f.key, silent); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

// TestServesOverTLSDuringCertificateChange: the API and its events over TLS, with both versions of HTTP, and a
// certificate that is replaced during the test.
func TestServesOverTLSDuringCertificateChange(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	cert1, key1 := keyPair(t, "one")
	cert2, key2 := keyPair(t, "two")
	f.write(t, cert1, key1)
	certificate, err := OpenCertificate(f.cert, f.key, silent)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, Config{Hosts: []string{"one", "two"}})
	listener, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, h, certificate)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		client, closeIdle := tlsClient(t, listener.Addr(), "one", cert1, protocol == "HTTP/2.0")
		stream := follow(t, client, "https://one", "")
		publish(h, 1, 1, 10)
		stream.expect(t, kindElection)
		if got := get(t, client, "https://one/healthz"); got != protocol+" 200 OK" {
			t.Errorf("%s; want %s", got, protocol)
		}
		stream.close()
		closeIdle()
	}
	f.write(t, cert2, key2)
	if err := certificate.reload(); err != nil {
		t.Fatal(err)
	}
	client, closeIdle := tlsClient(t, listener.Addr(), "two", cert2, true)
	defer closeIdle()
	if got := get(t, client, "https://two/healthz"); got != "HTTP/2.0 200 OK" {
		t.Errorf("with the new certificate: %s", got)
	}

	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	if got := get(t, &http.Client{Transport: plain}, "http://"+listener.Addr().String()+"/healthz"); !strings.HasSuffix(got, "400 Bad Request") {
		t.Errorf("without TLS: %s", got)
	}
}

// tlsClient returns a client that trusts one certificate and speaks to one address.
func tlsClient(t *testing.T, address net.Addr, name string, cert []byte, version2 bool) (client *http.Client, closeIdle func()) {
	t.Helper()
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(cert) {
		t.Fatal("the certificate cannot be trusted")
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: trusted, ServerName: name, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: version2,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address.String())
		},
	}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}

// get asks for a page and returns the protocol and the status of the answer.
func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.Proto + " " + response.Status
}
