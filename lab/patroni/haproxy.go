//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// haproxy is a proxy in front of all servers, which asks each Patroni whether its
// server is the primary.
type haproxy struct {
	path    string // of its configuration
	port    int
	process *exec.Cmd
}

// A server is down after two checks a second apart, and up after one.
const haproxyConfiguration = `global
  maxconn 500
defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
  timeout check 1s
listen primary
  bind %s:%d
  option httpchk GET /primary
  http-check expect status 200
  default-server check inter 1s fall 2 rise 1%s
`

// startProxy writes the configuration of HAProxy and starts it.
func (b *bed) startProxy(ctx context.Context) error {
	if _, err := os.Stat(haproxyProgram()); err != nil {
		return fmt.Errorf("%w; on Debian run: make prerequisites", err)
	}
	place, placeErr := b.box.Place()
	port, portErr := sandbox.FreePort()
	if err := errors.Join(placeErr, portErr); err != nil {
		return err
	}
	b.proxy = &haproxy{path: filepath.Join(place, "haproxy.cfg"), port: port}
	down := ""
	if b.endSessions {
		down = " on-marked-down shutdown-sessions"
	}
	var text strings.Builder
	fmt.Fprintf(&text, haproxyConfiguration, sandbox.Host, port, down)
	for _, s := range b.servers {
		fmt.Fprintf(&text, "  server %s %s port %d\n", s.name, s.address(b.network), s.restPort)
	}
	if err := errors.Join(os.WriteFile(b.proxy.path, []byte(text.String()), 0o600), b.box.Own(b.proxy.path)); err != nil {
		return err
	}
	return b.runProxy(ctx)
}

// runProxy starts HAProxy, also after its kill, and waits until only the primary
// answers through it: until the first checks, HAProxy takes every server as up, one
// after another.
func (b *bed) runProxy(ctx context.Context) error {
	var err error
	if b.proxy.process, err = b.launch(nil, filepath.Join(filepath.Dir(b.proxy.path), "log"), haproxyProgram(), "-db", "-f", b.proxy.path); err != nil {
		return err
	}
	return children.Until(ctx, 20*time.Second, 20*time.Millisecond, func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		for range b.servers {
			conn, err := pgx.Connect(ctx, b.nodesDSN())
			if err != nil {
				return err
			}
			if err := conn.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *haproxy) kill() {
	_ = p.process.Process.Kill() // it may have ended
	_ = p.process.Wait()
}

func haproxyProgram() string {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// nodesDSN is what the nodes know: all servers, or HAProxy.
func (b *bed) nodesDSN() string {
	if b.proxy == nil {
		return b.hosts(b.servers...)
	}
	address := net.JoinHostPort(sandbox.Host, strconv.Itoa(b.proxy.port))
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", address)
}

func killProxy(_ context.Context, b *bed, _, _ *server) (func(context.Context) error, error) {
	b.proxy.kill()
	return b.runProxy, nil
}

func freezeProxy(_ context.Context, b *bed, _, _ *server) (func(context.Context) error, error) {
	process := b.proxy.process.Process
	b.box.NoteStopped(process.Pid)
	return func(context.Context) error {
		b.box.NoteStopped()
		return process.Signal(syscall.SIGCONT)
	}, process.Signal(syscall.SIGSTOP)
}
