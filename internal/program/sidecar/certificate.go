package sidecar

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/secretfile"
)

// Certificate is a TLS certificate with its key, in two PEM files. After a change of the
// files, connections that begin a second later use the new pair. It is safe for concurrent
// use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu        sync.Mutex
	checkedAt time.Time
	cert      []byte // the source of current
	key       []byte
	current   *tls.Certificate
	lastFail  string // logged already
}

// OpenCertificate reads a certificate and its key. The error is one line and
// matches [tenure.ErrInvalidConfig].
func OpenCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// reload reads the files now. If they cannot be used, the certificate stays as
// it was, and the error says why.
func (c *Certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *Certificate) read() error {
	c.checkedAt = time.Now()
	cert, err := readFile(c.certFile)
	if err != nil {
		return fmt.Errorf("%w: the TLS certificate: %w", tenure.ErrInvalidConfig, err)
	}
	key, err := secretfile.Read(c.keyFile, maxFile)
	if err != nil {
		return fmt.Errorf("%w: the TLS key: %w", tenure.ErrInvalidConfig, err)
	}
	if c.current != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%w: the TLS certificate %s with the key %s: %w", tenure.ErrInvalidConfig, c.certFile, c.keyFile, err)
	}
	if c.current != nil {
		c.log.Info("the TLS certificate was replaced", "file", c.certFile, "not_after", pair.Leaf.NotAfter)
	}
	c.current, c.cert, c.key = &pair, cert, key
	return nil
}

// get is for tls.Config. An unusable pair, be it half replaced, leaves the old one in
// use.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checkedAt) >= checkInterval {
		failure := ""
		if err := c.read(); err != nil {
			failure = err.Error()
		}
		if failure != "" && failure != c.lastFail {
			c.log.Error("the TLS certificate cannot be replaced; the old one stays in use", "error", failure)
		}
		c.lastFail = failure
	}
	return c.current, nil
}
